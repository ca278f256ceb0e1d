#!/usr/bin/env php
<?php
/**
 * A billing job in plain PHP: one window a day on whatever host, each customer charged once, and a report that no
 * paused and awakened job can write over. Needs RUNLEDGER_DB, PAYMENTS_URL and runledger in PATH.
 *   php examples/php/billing.php REPORT CUSTOMER…
 */
declare(strict_types=1);

const CONFLICT = 73;

/** Runs `runledger …`: its exit code, and what it wrote to stdout. */
function runledger(string ...$args): array
{
    $process = proc_open(['runledger', ...$args], [0 => STDIN, 1 => ['pipe', 'w'], 2 => STDERR], $pipes);
    $output = stream_get_contents($pipes[1]);
    return [proc_close($process), $output];
}

/** Once per customer and window, however often this script is started, killed and started again. */
function charge(string $customer, int $cents): array
{
    [$code, $receipt] = runledger('effect', '--name', "charge:$customer", '--on-doubt', 'repeat', '--', PHP_BINARY, __DIR__ . '/charge.php', $customer, (string) $cents);
    if ($code !== 0) {
        throw new RuntimeException("charging $customer ended with $code", $code);
    }
    return json_decode($receipt, true, flags: JSON_THROW_ON_ERROR);
}

/** Under a lock that all writers share, and only with the newest fence. */
function writeReport(string $file, array $receipts): void
{
    $lock = fopen("$file.lock", 'c');
    flock($lock, LOCK_EX);
    [$code] = runledger('fence', 'check', '--resource', basename($file));
    if ($code !== 0) {
        throw new RuntimeException("another attempt has written $file", $code);
    }
    file_put_contents("$file.new", json_encode($receipts, JSON_PRETTY_PRINT | JSON_THROW_ON_ERROR) . "\n");
    rename("$file.new", $file);
}

[, $file] = $argv;
$customers = array_slice($argv, 2);

// The claim is kept in the background while this process lives; should it die, the next start takes over at once.
[$code, $claim] = runledger('claim', '--task', 'php-billing', '--every', '1d', '--max-attempts', '5', '--backoff', '0ms', '--hold', (string) getmypid());
if ($code !== 0) {
    exit($code === CONFLICT ? 0 : $code); // Somebody else has the window, or had it: nothing to do.
}
putenv("RUNLEDGER_CLAIM=$claim");

try {
    writeReport($file, array_map(fn (string $customer) => charge($customer, 995), $customers));
    [$code] = runledger('complete');
    exit($code);
} catch (RuntimeException $e) {
    fwrite(STDERR, $e->getMessage() . "\n");
    runledger('fail', '--error', $e->getMessage(), '--exit-code', (string) min(255, max(1, $e->getCode())));
    exit(1);
}
