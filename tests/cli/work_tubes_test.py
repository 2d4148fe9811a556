"""System tests of `carillon work` on tubes that match a pattern."""


from work_case import WorkCase

import side_by_side  # noqa: E402  (cli_case has made it known)

# Within this many seconds, new tubes are watched, and tubes that have gone are not watched any
# more. It leaves room for a busy machine.
NOTICED = 15.0


class PatternTest(WorkCase):
    def put_into(self, tube):
        return self.carillon("put", "--tube", tube, tube).rstrip("\n")

    def tubes(self):
        with self.server.connect() as connection:
            return connection.call(b"list-tubes").body.decode().split()

    def start_on(self, *tubes):
        arguments = [word for tube in tubes for word in ("--tube", tube)]
        return self.start("work", *arguments, "--", "sh", "-c", "cat; echo")

    def test_tubes_that_match_now_and_later(self):
        self.put_into("mail.a")
        other = self.put_into("news.a")
        worker = self.start_on("mail.*", "mail.[xy]?")
        self.assertEqual(worker.stdout.readline(), b"mail.a\n")
        for tube in ("mail.b", "mail.x1"):
            self.put_into(tube)
            self.assertEqual(worker.stdout.readline(), tube.encode() + b"\n")
        worker.terminate()
        self.assertEqual(worker.wait(30), 0)
        self.assertEqual(self.job(other)["state"], "ready")
        self.carillon("delete", other)

    def test_no_job_of_another_tube_is_taken_while_none_matches(self):
        job_id = self.put_into("default")
        worker = self.start_on("nothing.*")
        self.put_into("nothing.yet")
        self.assertEqual(worker.stdout.readline(), b"nothing.yet\n")
        self.wait_until(lambda: "nothing.yet" not in self.tubes(), "it is forgotten", NOTICED)
        self.put_into("nothing.again")
        self.assertEqual(worker.stdout.readline(), b"nothing.again\n")
        self.assertEqual(self.job(job_id)["state"], "ready")
        self.carillon("delete", job_id)

    def test_tubes_that_have_gone_are_forgotten_and_come_again(self):
        worker = self.start_on("gone.*", self.tube)
        for _ in range(2):
            self.put_into("gone.a")
            self.assertEqual(worker.stdout.readline(), b"gone.a\n")
            self.wait_until(lambda: "gone.a" not in self.tubes(), "it is forgotten", NOTICED)

    def test_until_empty_takes_all_that_match(self):
        for tube in ("many.1", "many.2", "many.3"):
            self.put_into(tube)
        done = self.run_carillon(
            "work", "--tube", "many.*", "--until-empty", "--", "sh", "-c", "cat; echo"
        )
        self.assertEqual(sorted(done.stdout.split()), [b"many.1", b"many.2", b"many.3"])
        self.assertEqual(done.returncode, 0)

    def test_what_matches_no_name_is_refused(self):
        # Without a refusal the worker would wait for ever.
        what_it_has = "a pattern has * ? [...], and what names of tubes have"
        for pattern, why in (
            ("mail *", what_it_has),
            ("mail!*", what_it_has),
            ("[", 'the "[" has no "]" behind it'),
            ("mail.[ab", 'the "[" has no "]" behind it'),
            ("mail.[]", 'the "[" has no "]" behind it'),
            ("mail.[!]", 'the "[" has no "]" behind it'),
            ("mail.]*", 'the "]" has no "[" before it'),
            ("[ab]]", 'the "]" has no "[" before it'),
            ("mail.[9-0]*", 'no name has a character of "[9-0]"'),
            ("[]]", 'no name has a character of "[]]"'),
            ("-*", 'no name begins with "-"'),
            ("a" * 201 + "*", "it stands for 201 bytes or more, and a name has up to 200"),
        ):
            with self.subTest(pattern=pattern):
                self.fails(
                    f'carillon work: --tube "{pattern}": matches no tube; {why}',
                    *("work", f"--tube={pattern}", "--", "true"),
                    code=2,
                )

    def test_all_forms_of_brackets(self):
        for pattern in ("[m-]", "[!a]", "[^]a]", "[]m]", "*[m]", "?", "[l-n]"):
            self.put_into("m")
            done = self.run_carillon("work", "--tube", pattern, "--once", "--", "cat")
            self.assertEqual((done.returncode, done.stdout), (0, b"m"), pattern)


if __name__ == "__main__":
    side_by_side.main()
