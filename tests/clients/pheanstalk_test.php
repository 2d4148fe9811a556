<?php
// Tests the server through the whole interface of the PHP client `pheanstalk`.
//
//     php pheanstalk_test.php HOST PORT

declare(strict_types=1);

require_once 'Pheanstalk/autoload.php';

use Pheanstalk\Exception\DeadlineSoonException;
use Pheanstalk\Exception\JobNotFoundException;
use Pheanstalk\Exception\JobTooBigException;
use Pheanstalk\Exception\ServerException;
use Pheanstalk\Job;
use Pheanstalk\Pheanstalk;

const LATE = 0.5; // seconds; the allowed lateness, since other tests run on the same machine

[, $host, $port] = $argv;

function connect(string $tube): Pheanstalk
{
    global $host, $port;

    return Pheanstalk::create($host, (int) $port)->useTube($tube)->watchOnly($tube);
}

function same($expected, $actual): void
{
    if ($expected !== $actual) {
        [$want, $got] = [var_export($expected, true), var_export($actual, true)];
        throw new AssertionError("expected $want, got $got");
    }
}

function throws(string $class, callable $act): void
{
    try {
        $act();
    } catch (Throwable $thrown) {
        if ($thrown instanceof $class) {
            return;
        }
        throw $thrown;
    }
    throw new AssertionError("nothing thrown; expected $class");
}

/**
 * Runs $act, which must take $seconds to $seconds + LATE. Measures with two clocks, since they
 * differ while the wall clock is adjusted, and takes the longer time.
 */
function takes(float $seconds, callable $act): void
{
    [$wall, $steady] = [microtime(true), hrtime(true)];
    $act();
    $elapsed = max(microtime(true) - $wall, (hrtime(true) - $steady) / 1e9);
    if ($elapsed < $seconds || $elapsed > $seconds + LATE) {
        throw new AssertionError("took $elapsed s; it should take $seconds s");
    }
}

/** Removes the quotes around strings, which beanstalkd 1.13 added; this older client keeps them. */
function unquoted(string $yaml): string
{
    return trim($yaml, '"');
}

$tests = [
    'put, reserve, delete' => function (Pheanstalk $client) {
        $put = $client->put('hello');
        $job = $client->reserve();
        same([$put->getId(), 'hello'], [$job->getId(), $job->getData()]);
        $client->delete($job);
        throws(JobNotFoundException::class, fn () => $client->delete($job));
        throws(JobNotFoundException::class, fn () => $client->peek($job));
        same(null, $client->peekReady());
    },
    'bodies are bytes' => function (Pheanstalk $client) {
        $body = implode('', array_map('chr', range(0, 255))) . "\r\nquit\r\n";
        foreach ([$body, '', "\r\n", str_repeat('z', 65535)] as $each) {
            $client->put($each);
            $job = $client->reserve();
            same($each, $job->getData());
            $client->delete($job);
        }
        throws(JobTooBigException::class, fn () => $client->put(str_repeat('z', 65536)));
        same(null, $client->reserveWithTimeout(0));
    },
    'the most urgent goes first' => function (Pheanstalk $client) {
        foreach ([[5, 'late'], [0, 'urgent'], [5, 'later'], [1023, 'last']] as [$priority, $body]) {
            $client->put($body, $priority);
        }
        $bodies = array_map(fn () => $client->reserve()->getData(), range(1, 4));
        same(['urgent', 'late', 'later', 'last'], $bodies);
    },
    'a delay' => function (Pheanstalk $client) {
        takes(1, function () use ($client) {
            $client->put('later', 0, 1);
            same('later', $client->peekDelayed()->getData());
            same(null, $client->peekReady());
            same('later', $client->reserveWithTimeout(10)->getData());
        });
    },
    'a time-out' => function (Pheanstalk $client) {
        takes(0, fn () => same(null, $client->reserveWithTimeout(0)));
        takes(1, fn () => same(null, $client->reserveWithTimeout(1)));
    },
    'release' => function (Pheanstalk $client) {
        $client->put('again', 9, 0, 77);
        $job = $client->reserve();
        $client->release($job, 3);
        $again = $client->reserve();
        same($job->getId(), $again->getId());
        $stats = $client->statsJob($again);
        same(['3', '1', '2'], [$stats['pri'], $stats['releases'], $stats['reserves']]);
        same(['77', 'reserved'], [$stats['ttr'], $stats['state']]);
        takes(1, function () use ($client, $again) {
            $client->release($again, 0, 1);
            same('delayed', $client->statsJob($again)['state']);
            same($again->getId(), $client->reserve()->getId());
        });
        $client->delete($again);
        throws(JobNotFoundException::class, fn () => $client->release($again));
    },
    'bury and kick' => function (Pheanstalk $client, string $tube) {
        $jobs = array_map(fn ($body) => $client->put($body), ['a', 'b', 'c']);
        foreach ($jobs as $job) {
            $client->bury($client->reserve(), 5);
        }
        same('3', $client->statsTube($tube)['current-jobs-buried']);
        same('a', $client->peekBuried()->getData());
        same(2, $client->kick(2));
        $client->kickJob($jobs[2]);
        throws(JobNotFoundException::class, fn () => $client->kickJob($jobs[2]));
        same(['a', 'b', 'c'], array_map(fn () => $client->reserve()->getData(), $jobs));
        throws(JobNotFoundException::class, fn () => $client->bury(new Job(999999999999, '')));
    },
    'kick takes delayed jobs when none is buried' => function (Pheanstalk $client) {
        $client->put('far', 0, 1000);
        same(1, $client->kick(10));
        same('far', $client->peekReady()->getData());
        same(0, $client->kick(10));
    },
    'touch and ttr' => function (Pheanstalk $client, string $tube) {
        $client->put('slow', 0, 0, 1);
        $job = $client->reserve();
        usleep(600000);
        $other = connect($tube);
        takes(1, function () use ($client, $other, $job) {
            $client->touch($job);
            same(null, $other->reserveWithTimeout(0));
            usleep(1050000);
            // beanstalkd sometimes notices the end of a ttr only at the connection's next command.
            $client->listTubeUsed(true);
            same($job->getId(), $other->reserveWithTimeout(10)->getId());
        });
        same('1', $other->statsJob($job)['timeouts']);
        throws(JobNotFoundException::class, fn () => $client->touch($job));
    },
    'deadline soon' => function (Pheanstalk $client) {
        $client->put('short', 0, 0, 1);
        $client->reserve();
        throws(DeadlineSoonException::class, fn () => $client->reserveWithTimeout(5));
    },
    'pause' => function (Pheanstalk $client, string $tube) {
        $client->put('wait');
        takes(1, function () use ($client, $tube) {
            $client->pauseTube($tube, 1);
            same('1', $client->statsTube($tube)['pause']);
            same(null, $client->reserveWithTimeout(0));
            same('wait', $client->reserveWithTimeout(10)->getData());
        });
        $client->pauseTube($tube, 1000);
        $client->put('resumed');
        $client->resumeTube($tube);
        same('resumed', $client->reserveWithTimeout(10)->getData());
        throws(ServerException::class, fn () => $client->pauseTube('pheanstalk-never', 1));
    },
    'tubes' => function (Pheanstalk $client, string $tube) {
        $client->watch('pheanstalk-other');
        same([], array_diff(['pheanstalk-other', $tube], $client->listTubesWatched(true)));
        $client->useTube('pheanstalk-other')->put('from the other');
        same('pheanstalk-other', $client->listTubeUsed(true));
        same(true, in_array('pheanstalk-other', $client->listTubes(), true));
        $job = $client->reserve();
        same('pheanstalk-other', unquoted($client->statsJob($job)['tube']));
        $client->delete($job);
        $client->useTube($tube)->ignore('pheanstalk-other');
        same(false, in_array('pheanstalk-other', $client->listTubes(), true));
        throws(ServerException::class, fn () => $client->ignore($tube)); // the last watched tube
        throws(ServerException::class, fn () => $client->statsTube('pheanstalk-never'));
    },
    'stats' => function (Pheanstalk $client, string $tube) {
        $before = (int) $client->stats()['cmd-put'];
        $client->put('counted');
        $stats = $client->stats();
        same($before + 1, (int) $stats['cmd-put']);
        same(['false', '65535'], [$stats['draining'], $stats['max-job-size']]);
        $stats = $client->statsTube($tube);
        same(['1', '1'], [$stats['total-jobs'], $stats['current-using']]);
        same($tube, unquoted($stats['name']));
    },
    'a thousand jobs' => function (Pheanstalk $client) {
        foreach (range(1, 1000) as $n) {
            $client->put((string) $n, $n % 3);
        }
        $bodies = [];
        while ($job = $client->reserveWithTimeout(0)) {
            $bodies[] = (int) $job->getData();
            $client->delete($job);
        }
        $expected = range(1, 1000);
        usort($expected, fn ($a, $b) => [$a % 3, $a] <=> [$b % 3, $b]);
        same($expected, $bodies);
    },
];

$failures = 0;
foreach (array_keys($tests) as $number => $name) {
    $tube = "pheanstalk-$number";
    try {
        $tests[$name](connect($tube), $tube);
        echo "ok      $name\n";
    } catch (Throwable $thrown) {
        ++$failures;
        $class = get_class($thrown);
        echo "FAILED  $name: $class: {$thrown->getMessage()}\n{$thrown->getTraceAsString()}\n";
    }
}
echo count($tests), " tests, $failures failed\n";
exit($failures === 0 ? 0 : 1);
