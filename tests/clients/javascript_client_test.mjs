// Tests of clients/javascript/carillon.mjs against a real server.
//
//   node javascript_client_test.mjs FOLDER-OF-THE-CLIENT HOST PORT
//
// HTTP is at PORT + 80.
import assert from "node:assert/strict";
import net from "node:net";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { after, test } from "node:test";

const [folder, host, portText] = process.argv.slice(2);
const port = Number(portText);
const carillon = await import(pathToFileURL(path.resolve(folder, "carillon.mjs")));
const { Client } = carillon;

const clients = [];
let tubes = 0;

async function aClient(options = {}) {
  const client = new Client({ host, port, ...options });
  clients.push(client);
  return client;
}

// A client with a tube of its own.
async function aQueue(options = {}) {
  const tube = options.tube ?? `javascript-${process.pid}-${++tubes}`;
  const queue = await aClient({ tube, ...options });
  await queue.watch(tube);
  return { queue, tube };
}

// Passes connections on to the server, until it is told to cut them.
async function aProxy(to = port) {
  const proxy = { keepsReplies: false, open: [] };
  const server = net.createServer((near) => {
    const far = net.connect({ host, port: to });
    proxy.open.push(near, far);
    near.on("data", (data) => far.write(data));
    far.on("data", (data) => {
      if (!proxy.keepsReplies) return near.write(data);
      proxy.keepsReplies = false;
      proxy.cut();
    });
    for (const socket of [near, far]) socket.on("error", () => {});
    near.on("close", () => far.destroy());
    far.on("close", () => near.destroy());
  });
  proxy.cut = () => proxy.open.splice(0).forEach((socket) => socket.destroy());
  proxy.close = () => {
    server.close();
    proxy.cut();
  };
  await new Promise((resolve) => server.listen(0, host, resolve));
  proxy.port = server.address().port;
  clients.push(proxy);
  return proxy;
}

// Answers the commands with these texts, whatever they are. `commands` has their first words.
// Before the last answer it calls whenDone().
async function aScript(answers, whenDone = () => {}) {
  const commands = [];
  const server = net.createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (data) => {
      const [verb] = /^[a-z-]+/.exec(data.toString()) ?? []; // none: the data of a command
      if (verb === undefined || answers.length === 0) return;
      commands.push(verb);
      if (answers.length === 1) whenDone();
      socket.write(`${answers.shift()}\r\n`);
    });
  });
  await new Promise((resolve) => server.listen(0, host, resolve));
  clients.push(server);
  return { commands, port: server.address().port };
}

// Resolves when it does.
async function until(holds) {
  for (const end = Date.now() + 20_000; !(await holds()); ) {
    assert.ok(Date.now() < end, "it took too long");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

after(() => clients.forEach((client) => client.close()));

test("a job is put, reserved and deleted", async () => {
  const { queue } = await aQueue();
  const put = await queue.put("naïve");
  assert.equal(put.result, "INSERTED");
  const job = await queue.reserve(5);
  assert.deepEqual([job.id, job.text], [put.id, "naïve"]);
  assert.equal(await job.touch(), false);
  await job.delete();
  assert.equal(await queue.reserve(0), null);
  await assert.rejects(job.delete(), carillon.NotFound);
});

test("options have their units", async () => {
  const { queue, tube } = await aQueue();
  const due = new Date(Date.now() + 3_600_000);
  for (const [options, delay] of [[{ delay: 90 }, 90], [{ delay: "2m" }, 120], [{ due }, 3600]]) {
    const { id } = await queue.put("x", { pri: 7, ttr: 30, ...options });
    const stats = await queue.statsJob(id);
    assert.deepEqual([stats.pri, stats.ttr, stats.tube], [7, 30, tube]);
    assert.ok(Math.abs(stats.delay - delay) <= 2, `${stats.delay}`);
  }
});

test("attributes are kept", async () => {
  const { queue, tube } = await aQueue();
  const attributes = { content_type: "text/plain", metadata: { say: 'a "b"\n\u00fc c' } };
  await queue.put("x", { delay: 60, attributes });
  await queue.put("y", { delay: 70, attributes: '{"metadata":{"a":"b"}}' });
  const listed = [];
  for await (const { content_type, metadata } of queue.listJobs(tube))
    listed.push({ content_type, metadata });
  assert.deepEqual(listed, [attributes, { content_type: undefined, metadata: { a: "b" } }]);
  for (const key of ['"a', 'a "b"']) await assert.rejects(queue.put("x", { key }), TypeError);
});

test("times are rounded up", async () => {
  const sent = [];
  const server = net.createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (data) => {
      const found = /^put-job 0 delay=(\S+)/.exec(data.toString());
      if (found) sent.push(found[1]) && socket.write("INSERTED 1\r\n");
    });
  });
  await new Promise((resolve) => server.listen(0, host, resolve));
  clients.push(server);
  const queue = await aClient({ port: server.address().port });
  for (const delay of [0.0001, 1.0004, 2.003, 86400]) await queue.put("", { delay });
  assert.deepEqual(sent, ["1ms", "1001ms", "2003ms", "86400000ms"]);
});

test("a tube and its groups are set with numbers", async () => {
  const { queue, tube } = await aQueue();
  const rate = { jobs: 100, per: 60, burst: 5 };
  const told = await queue.setTube(tube, { limits: { maxRunning: 10, rate } });
  assert.deepEqual(told.limits.rate, { ...rate, per: "60s" });
  await queue.setGroup(tube, "a", { weight: 3 });
  await queue.put("x", { group: "a" });
  const stats = await queue.statsTube(tube);
  assert.deepEqual([stats["max-running"], stats.rate, stats.burst], [10, 100, 5]);
  for await (const { name, weight } of queue.listGroups(tube))
    assert.deepEqual([name, weight], ["a", 3]);
  await queue.setTube(tube, { limits: { rate: null } });
  assert.equal((await queue.statsTube(tube)).rate, undefined);
});

test("puts wait for the rate of their tube", async () => {
  const { queue, tube } = await aQueue();
  const limits = { putRate: { jobs: 10, per: "1s", burst: 2 } };
  await queue.setTube(tube, { limits, retention: 86_400 });
  const begun = performance.now();
  await queue.putMany(["a", "b"]);
  await queue.put("c");
  assert.ok(performance.now() - begun >= 90);
  const stats = await queue.statsTube(tube);
  assert.deepEqual([stats["put-rate"], stats["retention-ms"]], [10, 86_400_000]);
  await queue.setTube(tube, { limits: { putRate: { jobs: 1, per: "30d", burst: 1 } } });
  await assert.rejects(async () => {
    for (let n = 0; n < 2; ++n) await queue.put("g");
  }, (error) => error instanceof carillon.Refused && error.word === "TOO_FAST");
});

test("a key makes a put safe to repeat", async () => {
  const { queue } = await aQueue();
  const { id } = await queue.put("a", { key: "k", delay: 60 });
  const exists = { id, result: "EXISTS", state: "delayed" };
  assert.deepEqual(await queue.put("b", { key: "k" }), exists);
  assert.deepEqual(await queue.putMany([["b", { key: "k" }]], { onConflict: "ignore" }), [exists]);
  assert.deepEqual(await queue.put("c", { key: "k", onConflict: "replace" }), {
    id,
    result: "REPLACED",
  });
  assert.equal(await queue.patch("k", { body: "d", pri: 3 }), id);
  assert.equal((await queue.peek("k")).text, "d");
  assert.equal(await queue.peek("other"), null);
  assert.equal((await queue.reserveJob(id)).text, "d");
  await assert.rejects(queue.cancel("k"), carillon.IsReserved);
  assert.equal(await queue.cancel("k", { ask: true }), false);
  assert.equal(await queue.touch(id), true);
  await queue.release(id);
  assert.equal(await queue.peek("k"), null);
});

test("what is refused says why", async () => {
  const { queue } = await aQueue();
  await assert.rejects(queue.put("x", { delya: 3 }), (error) => {
    assert.ok(error instanceof carillon.Refused);
    assert.equal(error.word, "BAD_OPTION");
    return error.message.includes('"delya": no such option');
  });
  await assert.rejects(queue.use("a\r\nquit"), TypeError);
  assert.ok((await queue.put("the connection is still usable")).id > 0);
});

test("a line that the server would refuse without its data is not sent", async () => {
  const { queue } = await aQueue();
  const { id } = await queue.put("kept");
  const data = `delete ${id}\r\n`;
  for (const key of ["k".repeat(1100), "a\0b", "a\nb"])
    await assert.rejects(queue.put(data, { key }), TypeError);
  await assert.rejects(queue.patch("no key", { body: data }), TypeError);
  assert.equal((await queue.reserve(0)).id, id);
});

test("a connection whose tube was refused is not used", async () => {
  let connections = 0;
  const server = net.createServer((socket) => {
    const first = connections++ === 0;
    const answers = first ? ["OUT_OF_MEMORY", "INSERTED 0"] : ["USING t", "INSERTED 1"];
    socket.on("error", () => {});
    socket.on("data", () => socket.write(`${answers.shift()}\r\n`));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const queue = new carillon.Client({ port: server.address().port, tube: "t" });
  await assert.rejects(queue.put("a"), carillon.Refused);
  assert.equal((await queue.put("a")).id, 1);
  queue.close();
  server.close();
});

test("an error is told as it was", async () => {
  const { queue } = await aQueue();
  for (const error of ['say "no" \\ \n\t\u2028', "404"]) {
    await queue.put("x");
    const job = await queue.reserve(5);
    await job.fail(error, { delay: 60 });
    assert.equal((await queue.story(job.id))[0].error, error);
  }
});

test("commands that are not awaited are carried out in their order", async () => {
  const { queue } = await aQueue();
  const puts = await Promise.all(["a", "b", "c"].map((body) => queue.put(body)));
  assert.ok(puts[0].id < puts[1].id && puts[1].id < puts[2].id);
});

test("release, bury and kick", async () => {
  const { queue } = await aQueue();
  const { id } = await queue.put("a", { pri: 5 });
  await (await queue.reserve(5)).release();
  assert.equal((await queue.statsJob(id)).pri, 5);
  await (await queue.reserve(5)).bury();
  assert.equal((await queue.peekBuried()).id, id);
  assert.equal(await queue.kick(10), 1);
  await (await queue.reserve(5)).release({ pri: 1, delay: 60 });
  assert.equal((await queue.peekDelayed()).id, id);
  await queue.kickJob(id);
  assert.equal((await queue.peekReady()).id, id);
});

test("a job is shown and buried by its key", async () => {
  const { queue, tube } = await aQueue();
  const due = new Date("2040-01-01T09:00:00Z");
  const { id } = await queue.put("a", { key: "k", due, group: "acme" });
  const shown = await queue.show("k");
  assert.deepEqual([shown.id, shown.due], [id, "2040-01-01T09:00:00.000Z"]);
  assert.equal((await queue.statsGroup(tube, "acme")).jobs.delayed, 1);
  assert.equal(await queue.buryJob("k", 7), id);
  assert.equal(await queue.buryJob(id), id);
  const { state, priority, body } = await queue.show(id);
  assert.deepEqual([state, priority, body], ["buried", 7, "a"]);
  await queue.kickJob(id);
  const { id: held } = await queue.reserveJob(id);
  await assert.rejects(queue.buryJob(held), carillon.IsReserved);
  await assert.rejects(queue.show("another key"), carillon.NotFound);
  const other = await queue.put("b", { buried: true });
  assert.equal((await queue.show(other.id)).state, "buried");
});

test("statistics and tubes", async () => {
  const { queue, tube } = await aQueue();
  await queue.put("a");
  assert.ok((await queue.tubes()).includes(tube));
  assert.equal((await queue.statsTube(tube))["current-jobs-ready"], 1);
  assert.ok((await queue.stats()).pid > 1);
  await queue.pauseTube(tube, 1);
  assert.equal(await queue.reserve(0), null);
});

test("batches", async () => {
  const { queue, tube } = await aQueue();
  const jobs = ["a", Buffer.from("b"), ["c", { pri: 1, key: "k" }]];
  const puts = await queue.putMany(jobs, { pri: 9, once: tube, window: "1h" });
  assert.deepEqual(await queue.putMany(jobs, { pri: 9, once: tube, window: "1h" }), puts);
  const got = await queue.reserveMany(10, 5);
  assert.deepEqual(got.map((job) => job.text), ["c", "a", "b"]);
  const ids = got.map((job) => job.id);
  await assert.rejects(queue.putMany(["x", ["y", { key: "k" }]]), (error) => {
    assert.ok(error instanceof carillon.BatchRefused);
    assert.equal(error.index, 1);
    return error.why === `EXISTS ${ids[0]} reserved`;
  });
  assert.deepEqual(await queue.releaseMany([ids[1], 2 ** 50]), [true, false]);
  assert.deepEqual(await queue.deleteMany(ids), [true, true, true]);
  assert.deepEqual(await queue.reserveMany(10, 0), []);
});

test("jobs are listed page by page", async () => {
  const { queue, tube } = await aQueue();
  const jobs = [0, 1, 2, 3, 4, 5, 6].map((i) => [`${i}`, { delay: 60 + i }]);
  const puts = await queue.putMany(jobs);
  const listed = [];
  for await (const job of queue.listJobs(tube, { pageSize: 2, bodies: true })) listed.push(job);
  assert.deepEqual(listed.map(({ id }) => id), puts.map(({ id }) => id));
  assert.deepEqual(listed.map(({ body }) => body), [..."0123456"]);
  await queue.put(Buffer.from([0xff]));
  for await (const job of queue.listJobs(tube, { state: "ready", bodies: true }))
    assert.deepEqual(job.body, Buffer.from([0xff]));
  for await (const job of queue.listJobs("no-such-tube")) assert.fail(job);
  await assert.rejects(queue.listGroups("no-such-tube").next(), carillon.NotFound);
});

test("groups are listed", async () => {
  const { queue, tube } = await aQueue();
  for (const group of ["a", "b", "b"]) await queue.put("x", { group });
  const groups = [];
  for await (const one of queue.listGroups(tube)) groups.push(one);
  assert.deepEqual(groups.map(({ name, jobs }) => [name, jobs.ready]), [["a", 1], ["b", 2]]);
});

test("many jobs are counted, moved, retried and cancelled", async () => {
  const { queue, tube } = await aQueue();
  await queue.putMany([0, 1, 2, 3, 4].map((i) => ["x", { key: `a-${i}` }]), { delay: 3600 });
  await queue.put("y", { key: "b", delay: 90 });
  const keyPrefix = "a-";
  assert.deepEqual(await queue.cancelJobs(tube, { keyPrefix, dryRun: true }), { jobs: 5, left: 0 });
  const { spans, ...all } = await queue.dueCounts(tube, { by: "minute", spans: 5 });
  assert.equal(spans.reduce((sum, { jobs }) => sum + jobs, 0), 1);
  assert.deepEqual([all.delayed, all.later], [6, 5]);
  const other = `${tube}-2`;
  const moved = await queue.moveJobs(tube, other, { keyPrefix, max: 2 });
  assert.deepEqual(moved, { jobs: 2, left: 0 });
  assert.deepEqual(await queue.moveJobs(tube, other, { keyPrefix }), { jobs: 3, left: 0 });
  assert.deepEqual(await queue.retryJobs(other, { state: "delayed" }), { jobs: 5, left: 0 });
  await queue.watch(other);
  await queue.reserve(5);
  assert.deepEqual(await queue.cancelJobs(other), { jobs: 4, left: 1 });
});

test("many jobs are spread", async () => {
  const { queue, tube } = await aQueue();
  const dueAfter = new Date("2040-01-01T00:00:00Z");
  await queue.putMany(Array(20).fill("x"), { due: dueAfter });
  const window = { dueAfter, dueBefore: new Date("2040-01-01T00:00:01Z") };
  const counted = await queue.spreadJobs(tube, "1h", { ...window, dryRun: true });
  assert.ok(counted.jobs > 15);
  assert.deepEqual(await queue.spreadJobs(tube, 3600, window), counted);
  const dues = new Set();
  for await (const job of queue.listJobs(tube)) dues.add(job.due);
  assert.ok(dues.size > 15);
  await assert.rejects(queue.spreadJobs(tube, 3600), carillon.Refused);
});

const retry = { maxAttempts: 2, backoff: { type: "fixed", initial: 0.01 } };

test("work deletes jobs, and fails them with the error", async () => {
  const { queue, tube } = await aQueue();
  await queue.setTube(tube, { retry });
  const { id } = await queue.put("bad", { pri: 1 });
  await queue.put("good", { pri: 2 });
  const worker = await aClient({ name: "worker-7" });
  const stop = new AbortController();
  const seen = [];
  const handler = async (job) => {
    if (seen.push(job.text) === 3) stop.abort();
    if (job.text === "bad") throw new RangeError("no thing");
  };
  await worker.work(tube, handler, { signal: stop.signal, poll: 0.2 });
  assert.deepEqual(seen.sort(), ["bad", "bad", "good"]);
  const story = await queue.story(id);
  assert.deepEqual(story.map(({ worker: who, error }) => [who, error]), [
    ["worker-7", "RangeError: no thing"],
    ["worker-7", "RangeError: no thing"],
  ]);
});

test("another connection that a handler has lost is its failure", async () => {
  const { queue, tube } = await aQueue();
  await queue.setTube(tube, { retry });
  const { id } = await queue.put("x");
  const nobody = await aClient({ port: 1 });
  const worker = await aClient();
  const stop = new AbortController();
  let runs = 0;
  const handler = async () => {
    if (++runs === 2) stop.abort();
    await nobody.put("y");
  };
  await worker.work(tube, handler, { signal: stop.signal, poll: 0.2 });
  const story = await queue.story(id);
  assert.deepEqual(story.map(({ ended }) => ended), ["failed", "failed"]);
  assert.match(story[0].error, /^ConnectionLost: put-job/);
});

// Works for a server with these answers, all of which it must ask for.
async function scriptedWork(answers, handler = () => {}) {
  const stop = new AbortController();
  const script = await aScript(["WATCHING 2", "WATCHING 1", ...answers], () => stop.abort());
  const worker = await aClient({ port: script.port });
  await worker.work("t", handler, { signal: stop.signal });
  return script.commands.slice(2);
}

test("work goes on when the disk was full", async () => {
  const job = "JOBS 1\r\nRESERVED 7 1\r\nx";
  let runs = 0;
  const answers = ["INTERNAL_ERROR", "OUT_OF_MEMORY", job, "INTERNAL_ERROR", "DELETED"];
  const commands = await scriptedWork(answers, () => ++runs);
  assert.deepEqual(commands, [...Array(3).fill("reserve-jobs"), "delete", "delete"]);
  assert.equal(runs, 1);
  const stats = "OK 16\r\n---\nattempts: 1\n";
  const told = await scriptedWork([job, stats, "INTERNAL_ERROR", "AGAIN 1 1000"], () => {
    throw new carillon.Refused("another", "thing");
  });
  assert.deepEqual(told, ["reserve-jobs", "stats-job", "fail-job", "fail-job"]);
});

test("a job without a back-off waits longer after each failure", async () => {
  const { queue, tube } = await aQueue();
  const { id } = await queue.put("x");
  const worker = await aClient();
  const stop = new AbortController();
  let runs = 0;
  const handler = async () => {
    if (++runs === 2) stop.abort();
    throw new RangeError("no");
  };
  const began = Date.now();
  await worker.work(tube, handler, { signal: stop.signal, poll: 0.2 });
  assert.ok(Date.now() - began >= 750);
  const story = await queue.story(id);
  const delay = Date.parse((await queue.show(id)).due) - Date.parse(story[1].at);
  assert.ok(delay >= 1490 && delay <= 2010, String(delay));
});

test("work does not spin while a job runs out", async () => {
  const began = Date.now();
  await scriptedWork(Array(5).fill("DEADLINE_SOON"));
  assert.ok(Date.now() - began > 350);
});

test("what will always be refused ends work", async () => {
  for (const answer of ["FORBIDDEN its token", "UNKNOWN_COMMAND"])
    await assert.rejects(scriptedWork([answer]), carillon.Refused);
});

test("close ends a reserve that waits, and what was asked after it", async () => {
  const { queue, tube } = await aQueue();
  const { queue: other } = await aQueue({ tube });
  const reserved = queue.reserve();
  const after = queue.put("never put");
  await until(async () => (await other.statsTube(tube))["current-waiting"] === 1);
  queue.close();
  await assert.rejects(reserved, carillon.ConnectionLost);
  await assert.rejects(after, (error) => error.unknown === false);
  assert.equal((await queue.put("x")).result, "INSERTED"); // connects anew
  assert.equal((await other.reserve(5)).text, "x");
  assert.equal(await other.reserve(0), null);
});

test("close ends work", async () => {
  const { queue, tube } = await aQueue();
  await queue.put("x");
  const worker = await aClient();
  const seen = [];
  const handler = (job) => {
    worker.close();
    seen.push(job.text);
  };
  await assert.rejects(worker.work(tube, handler), carillon.ConnectionLost);
  assert.deepEqual(seen, ["x"]);
  await until(async () => (await queue.statsTube(tube))["current-watching"] === 1);
  assert.equal((await queue.statsTube(tube))["current-jobs-ready"], 0); // it was done
  const waits = worker.work(tube, handler);
  await until(async () => (await queue.statsTube(tube))["current-waiting"] === 1);
  worker.close();
  await assert.rejects(waits, carillon.ConnectionLost);
});

test("work goes on when the connection was lost", async () => {
  const { queue, tube } = await aQueue();
  const proxy = await aProxy();
  const worker = await aClient({ port: proxy.port });
  await queue.put("a");
  const stop = new AbortController();
  const seen = [];
  const handler = async (job) => {
    if (seen.push(job.text) === 2) return stop.abort();
    proxy.cut();
    await job.touch(); // throws: it is not held any more
  };
  await worker.work(tube, handler, { signal: stop.signal, poll: 0.2 });
  assert.deepEqual(seen, ["a", "a"]);
});

test("nobody knows whether a put without an answer was carried out", async () => {
  const { queue, tube } = await aQueue();
  const proxy = await aProxy();
  const far = await aClient({ port: proxy.port, tube });
  await far.stats();
  proxy.keepsReplies = true;
  await assert.rejects(far.put("x"), (error) => error.unknown === true);
  assert.equal((await queue.reserve(5)).text, "x");

  await far.stats();
  proxy.keepsReplies = true;
  const put = await far.put("y", { key: "k", keyWindow: "1h" });
  assert.equal(put.result, "EXISTS");
  proxy.keepsReplies = true;
  assert.equal((await far.putMany(["a", "b"], { once: tube })).length, 2);
  assert.equal((await queue.statsTube(tube))["current-jobs-ready"], 3);

  proxy.close();
  await new Promise((resolve) => setTimeout(resolve, 100));
  await assert.rejects(far.put("z"), (error) => error.unknown === false);
});

test("a put that replaces is not repeated", async () => {
  const { queue, tube } = await aQueue();
  const proxy = await aProxy();
  const far = await aClient({ port: proxy.port, tube });
  const put = async (options) => {
    await far.stats();
    proxy.keepsReplies = true;
    return far.put("x", { keyWindow: "1h", ...options });
  };
  for (const onConflict of ["replace", "keep-due", "debounce"]) {
    await assert.rejects(put({ key: "k", onConflict }), (error) => error.unknown === true);
    // If it was repeated after this, the job would be run twice.
    await (await queue.reserve(5)).delete();
    assert.equal(await queue.reserve(0), null);
  }
  for (const onConflict of ["reject", "ignore"])
    assert.equal((await put({ key: onConflict, onConflict })).result, "EXISTS");
});

test("a schedule", async () => {
  const { queue, tube } = await aQueue();
  const cron = "30 8 * * MON-FRI";
  await queue.setSchedule(tube, "sales", { cron, timeZone: "Europe/Berlin" });
  const names = [];
  for await (const { name } of queue.listSchedules()) names.push(name);
  assert.ok(names.includes(tube));
  const shown = await queue.showSchedule(tube);
  assert.deepEqual([shown.cron, shown.job.tube, shown.job.body], [cron, tube, "sales"]);
  assert.equal(shown.paused, false);
  await queue.pauseSchedule(tube);
  assert.equal((await queue.showSchedule(tube)).paused, true);
  const id = await queue.triggerSchedule(tube);
  assert.equal((await queue.reserve(5)).id, id);
  await queue.resumeSchedule(tube);
  const metadata = { maxSize: 5 };
  const attributes = { orderId: 7 };
  await queue.setSchedule(tube, Buffer.from([0xff]), { every: 3600, metadata, attributes });
  const changed = await queue.showSchedule(tube);
  assert.deepEqual(changed.job.attributes, attributes);
  assert.deepEqual([changed.every, changed.job.metadata], ["3600s", metadata]);
  assert.deepEqual(changed.job.body, Buffer.from([0xff]));
  await queue.deleteSchedule(tube);
  await assert.rejects(queue.showSchedule(tube), carillon.NotFound);
  await assert.rejects(queue.setSchedule(tube, "x", { every: "soon" }), /400 \/every: /);
});

test("a request without an answer may be repeated, or not", async () => {
  const proxy = await aProxy(port + 80);
  const { queue, tube } = await aQueue({ http: { host, port: proxy.port }, timeout: 5 });
  await queue.put("x", { delay: 60 });
  const jobs = async () => {
    const ids = [];
    for await (const { id } of queue.listJobs(tube)) ids.push(id);
    return ids.length;
  };
  proxy.keepsReplies = true;
  assert.equal(await jobs(), 1);
  proxy.keepsReplies = true;
  await assert.rejects(queue.cancelJobs(tube), (error) => error.unknown === true);
  assert.equal(await jobs(), 0);
  const nobody = await aClient({ http: { host, port: 1 } });
  await assert.rejects(nobody.show(1), (error) => error.unknown === false);
});
