<?php
// A job like many: collects the items of its window, one a second, and writes them to one file when it has them all.
//   php news.php FOLDER SECONDS,SECONDS,…     the nth window of the demo takes the nth of these seconds, over and over
[, $folder, $pattern] = $argv;
$task = getenv('RUNLEDGER_TASK');
$window = getenv('RUNLEDGER_WINDOW_START');
$first = intdiv((int) file_get_contents("$folder/first-window"), 60);
$seconds = explode(',', $pattern);
$items = (int) $seconds[(intdiv(strtotime($window), 60) - $first) % count($seconds)];

echo "$task: $items items for the window of $window, attempt ", getenv('RUNLEDGER_ATTEMPT'), "\n";
$lines = [];
for ($item = 1; $item <= $items; $item++) {
    sleep(1);
    $lines[] = sprintf('item %d of %d, collected at %s', $item, $items, gmdate('H:i:s'));
}
$file = sprintf('%s/%s-%s.txt', $folder, $task, gmdate('Hi', strtotime($window)));
file_put_contents("$file.new", implode("\n", $lines) . "\n");
rename("$file.new", $file); // run again, it writes the same file again
echo "$task: done\n";
