"""Tests of include_rules.py: lines that break a rule are refused, and similar right lines pass."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import include_rules
from include_rules import fault, faults_in

REFUSED = [
    # upward, and sideways between layers at the same height
    (
        "include/carillon/wheel/timer_node.h",
        '#include "carillon/timer/timer_service.h"',
        "wheel must not include timer",
    ),
    (
        "include/carillon/queue/engine.h",
        '#include "carillon/server/listener.h"',
        "queue must not include server",
    ),
    (
        "src/queue/store/disk_store.cpp",
        '#include "server/net/connection.h"',
        "queue must not include server",
    ),
    (
        "src/queue/engine/state/engine.cpp",
        '#include "carillon/timer/timer_service.h"',
        "queue must not include timer",
    ),
    (
        "src/queue/engine/state/engine.cpp",
        '#include "carillon/idle/idle_tracker.h"',
        "queue must not include idle",
    ),
    (
        "src/server/alarm.cpp",
        '#include "carillon/timer/timer_service.h"',
        "server must not include timer",
    ),
    (
        "src/queue/engine/schedules/schedules.cpp",
        '#include "carillon/timer/cron_schedule.h"',
        "queue must not include timer",
    ),
    ("src/base/file_io.h", '#include "carillon/queue/job.h"', "base must not include queue"),
    (
        "src/timer/timer_core.cpp",
        '#include "base/file_descriptor.h"',
        "timer must not include base",
    ),
    ("src/server/listener.cpp", '  #  include   "cli/commands.h"', "server must not include cli"),
    (
        "src/idle/idle_tracker.cpp",
        '#include "carillon/timer/timer_service.h"',
        "idle must not include timer",
    ),
    (
        "src/timer/timer_service.cpp",
        '#include "carillon/idle/idle_tracker.h"',
        "timer must not include idle",
    ),
    # rooms of one layer that must not include each other, and detail/ headers of another layer
    ("src/queue/engine/state/engine.cpp", '#include "queue/store/journal.h"', "must not include"),
    ("src/queue/store/journal.cpp", '#include "queue/engine/tubes/tube.h"', "must not include"),
    (
        "include/carillon/idle/idle_tracker.h",
        '#include "carillon/wheel/detail/slot.h"',
        "is for wheel alone",
    ),
    # public headers that need files that are not installed
    (
        "include/carillon/queue/engine.h",
        '#include "queue/loader.h"',
        "a public header includes the private",
    ),
    (
        "include/carillon/queue/disk_store.h",
        "#include <rocksdb/db.h>",
        "only the standard library and Carillon",
    ),
    (
        "include/carillon/idle/idle_tracker.h",
        "#include <unistd.h>",
        "only the standard library and Carillon",
    ),
    (
        "include/carillon/asio/wheel_timer.h",
        '#include "carillon/idle/idle_tracker.h"',
        "asio must not include idle",
    ),
    (
        "include/carillon/timer/timer_service.h",
        "#include <boost/asio.hpp>",
        "only the standard library and Carillon",
    ),
    (
        "include/carillon/asio/wheel_timer.h",
        "#include <rocksdb/db.h>",
        "only the standard library and Carillon",
    ),
    # wheel uses only the standard library
    (
        "include/carillon/wheel/pool.h",
        "#include <boost/intrusive/list.hpp>",
        "wheel includes only the standard",
    ),
    (
        "include/carillon/wheel/pool.h",
        "#include <sys/mman.h>",
        "wheel includes only the standard",
    ),
    (
        "include/carillon/wheel/pool.h",
        "#include <stdint.h>",
        "wheel includes only the standard",
    ),
    # third-party libraries that the layer may not use
    ("src/server/listener.cpp", "#include <rocksdb/db.h>", "server does not use rocksdb"),
    ("src/timer/timer_service.cpp", "#include <boost/asio.hpp>", "it uses: none"),
    ("src/timer/timer_service.cpp", "#include <date/tz.h>", "timer does not use date"),
    ("src/timer/cron/time_zone.cpp", "#include <boost/asio.hpp>", "it uses: date"),
    ("src/queue/store/disk_store.cpp", "#include <spdlog/spdlog.h>", "queue does not use spdlog"),
    ("src/queue/store/disk_store.cpp", "#include <expected>", "not a header of C++20"),
    # paths that do not name a layer
    ("src/queue/store/disk_store.cpp", '#include "engine.h"', "is in no layer"),
    ("src/queue/store/disk_store.cpp", '#include "../server/connection.h"', "is in no layer"),
    ("src/queue/store/disk_store.cpp", '#include "gadget/engine.h"', "is in no layer"),
    ("src/gadget/engine.cpp", "#include <vector>", "in no known layer"),
    ("src/engine.cpp", "#include <vector>", "in no known layer"),
    ("src/queue/store/disk_store.cpp", "#include ENGINE_HEADER", "must name its file"),
    # rooms, and private headers of other layers
    ("src/queue/helper.cpp", "#include <vector>", "the file is in no room"),
    ("src/server/alarm.cpp", '#include "queue/engine/tubes/tube.h"', "is private"),
    ("src/cli/serve.cpp", '#include "queue/store/journal.h"', "is private"),
    ("src/timer/timer_core.cpp", '#include "timer/cron/time_zone.h"', "is for src/timer/cron/"),
    # the engine: no thread, no clock, no file, no database
    ("src/queue/engine/state/engine.cpp", "#include <rocksdb/db.h>", "uses no <rocksdb/db.h>"),
    ("src/queue/engine/state/engine.cpp", "#include <unistd.h>", "uses no <unistd.h>"),
    ("src/queue/engine/state/engine.cpp", "#include <thread>", "uses no <thread>"),
    ("src/queue/engine/state/engine.cpp", "#include <chrono>", "uses no <chrono>"),
    ("src/queue/engine/state/engine.cpp", '#include "base/file_io.h"', "uses no base/file_io.h"),
    # what all layers may include
    ("include/carillon/require.h", "#include <rocksdb/db.h>", "is for all layers"),
    ("include/carillon/require.h", '#include "carillon/wheel/moment.h"', "is for all layers"),
    # the layers at both ends
    ("src/cli/main.cpp", '#include "carillon/idle/idle_tracker.h"', "cli must not include idle"),
    ("src/server/alarm.cpp", '#include "carillon/wheel/timer_node.h"', "server must not include"),
    ("src/base/crc32c.cpp", "#include <boost/crc.hpp>", "it uses: none"),
]

ALLOWED = [
    ("src/server/text/calendar.cpp", '#include "carillon/timer/cron_schedule.h"'),
    ("include/carillon/wheel/hierarchical_wheel.h", '#include "carillon/wheel/timer_node.h"'),
    ("include/carillon/wheel/hierarchical_wheel.h", "#include <bit>  // countr_zero"),
    ("include/carillon/wheel/detail/page_blocks.h", "#include <sys/mman.h>"),
    ("include/carillon/wheel/hierarchical_wheel.h", '#include "carillon/wheel/detail/slot.h"'),
    ("include/carillon/queue/engine.h", '#include "carillon/wheel/timer_pool.h"'),
    ("include/carillon/wheel/timer_node.h", '#include "carillon/require.h"'),
    ("src/base/text.cpp", '#include "carillon/require.h"'),
    ("src/queue/engine/state/engine.cpp", '#include "carillon/require.h"'),
    ("src/server/alarm.cpp", '#include "carillon/require.h"'),
    ("include/carillon/require.h", "#include <cstdio>"),
    ("include/carillon/asio/wheel_timer.h", "#include <boost/asio/error.hpp>"),
    ("src/timer/timer_service.cpp", "#include <sys/eventfd.h>"),
    ("src/timer/cron/time_zone.cpp", "#include <date/tz.h>"),
    ("src/queue/store/state/rocks_state.cpp", "#include <rocksdb/db.h>"),
    ("src/queue/engine/state/engine.cpp", '#include "queue/engine/tubes/tube.h"'),
    ("src/queue/engine/state/engine.cpp", '#include "carillon/queue/store.h"'),
    ("src/queue/store/journal.cpp", '#include "base/file_io.h"'),
    ("src/queue/engine/state/engine.cpp", '#include "base/text.h"'),
    ("src/server/beanstalk/session.cpp", '#include "server/net/connection.h"'),
    ("src/server/beanstalk/session.cpp", "#include <boost/asio.hpp>"),
    ("src/cli/main.cpp", '#include "carillon/queue/engine.h"'),
    ("src/cli/main.cpp", "#include <CLI/CLI.hpp>"),
    ("src/cli/main.cpp", "#include <unistd.h>"),
    ("include/carillon/wheel/timer_node.h", '//   #include "carillon/queue/engine.h"'),
    ("include/carillon/wheel/timer_node.h", 'constexpr auto kName = "#include <boost/asio.hpp>";'),
]


class IncludeRules(unittest.TestCase):
    def test_lines_that_break_a_rule_are_refused_with_the_reason(self):
        for file, line, reason in REFUSED:
            with self.subTest(file=file, line=line):
                self.assertIn(reason, fault(file, line) or "nothing")

    def test_lines_that_keep_the_rules_pass(self):
        for file, line in ALLOWED:
            with self.subTest(file=file, line=line):
                self.assertIsNone(fault(file, line))

    def test_a_fault_is_reported_with_its_line_and_comments_do_not_count(self):
        text = (
            '#include <vector>\n/* as in\n#include "cli/commands.h"\n*/\n'
            '#include "server/net/connection.h"\n'
        )
        faults = list(faults_in("src/queue/store/batch.cpp", text))
        reason = "queue must not include server: layers include downward only"
        self.assertEqual(faults, [f"src/queue/store/batch.cpp:5: {reason}"])

    def test_a_file_may_have_600_lines_and_not_one_more(self):
        self.assertEqual(list(faults_in("src/queue/store/batch.cpp", "\n" * 600)), [])
        too_long = "src/queue/store/batch.cpp: 601 lines; the limit is 600"
        self.assertEqual(list(faults_in("src/queue/store/batch.cpp", "\n" * 601)), [too_long])

    def test_the_check_of_a_tree_fails_if_one_line_is_wrong(self):
        check = [sys.executable, "-B", include_rules.__file__]
        with tempfile.TemporaryDirectory() as root:
            folder = pathlib.Path(root) / "src" / "base"
            folder.mkdir(parents=True)
            (folder / "good.cpp").write_text("#include <vector>\n")
            self.assertEqual(subprocess.call([*check, root], stdout=subprocess.DEVNULL), 0)
            (folder / "bad.cpp").write_text("#include <rocksdb/db.h>\n")
            self.assertEqual(subprocess.call([*check, root], stdout=subprocess.DEVNULL), 1)


if __name__ == "__main__":
    unittest.main()
