<?php
/** The effect itself: charges at the payment service, with the key that is the same on every attempt, and prints the receipt. */
declare(strict_types=1);

[, $customer, $cents] = $argv;
$answer = @file_get_contents(getenv('PAYMENTS_URL') . '/charges', false, stream_context_create(['http' => [
    'method' => 'POST',
    'header' => ['Content-Type: application/json', 'Idempotency-Key: ' . getenv('RUNLEDGER_IDEMPOTENCY_KEY')],
    'content' => json_encode(['customer' => $customer, 'cents' => (int) $cents]),
]]));
if ($answer === false) {
    fwrite(STDERR, "no receipt for $customer\n");
    exit(1); // Whether it was charged, nobody knows: the ledger says so to the next attempt.
}
echo $answer;
