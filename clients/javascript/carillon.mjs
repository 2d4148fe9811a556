/**
 * A client of Carillon, the delayed-job server: one file for Node.js, without dependencies.
 *
 *   import { Client } from "./carillon.mjs";
 *
 *   const queue = new Client(); // 127.0.0.1:11300
 *   await queue.put("hello", { delay: 3 }); // in three seconds
 *   await queue.put("remind", { key: "invoice-7", delay: "1h30m", onConflict: "replace" });
 *   await queue.putMany(["a", "b", "c"], { once: "import-7" });
 *   await queue.work("default", async (job) => console.log(job.text));
 *
 * Times are seconds, or texts with a unit ("250ms", "3s", "40d"); moments are Dates. What is finer
 * than a millisecond is rounded up, so that nothing comes early. Options are those of the server's
 * verbs, in camel case: { maxAttempts: 5, backoff: "1s..1h", attributes: { content_type: "text/csv"
 * } }. The server checks them, so options that are newer than this file work, too. docs/protocol.md
 * says what each verb does and promises.
 *
 * Producers and workers talk on the port of the beanstalk protocol. What operators ask for (lists,
 * changes of many jobs, settings, schedules) goes to the server's HTTP API: options are the fields
 * of the request, in camel case, and results are the fields of the answer, as docs/http.md names
 * them.
 *
 * Errors. All are CarillonError. Refused is an answer of the server, with its words in `reply` (by
 * HTTP: the status and the reason), and nothing was changed unless it says how many jobs were.
 * ConnectionLost is no answer: see `unknown`.
 *
 * Lost connections. The client connects with the first command, and again when the connection is
 * gone; tubes and name are set anew. A command that may be repeated is sent again once: all that
 * only read, a reserve (jobs of the lost connection come back by themselves), a batch with `once`,
 * and a put with a key and a keyWindow whose onConflict replaces no job: it is "reject", "ignore"
 * or absent. (Let the window be longer than `timeout`. If somebody cancels the job between the
 * reply that was lost and the repeat, its key is free, and the repeat makes the job anew. The same
 * holds for a job that has expired by then, or was deleted while it was delayed or buried.) Any
 * other command that was sent rejects with ConnectionLost and `unknown` true, as nobody knows
 * whether it was carried out. Jobs that were reserved are not held any more.
 *
 * The commands of a client are carried out one after the other: while a reserve waits, so does what
 * is asked after it. A worker that also puts has two clients.
 */
import http from "node:http";
import https from "node:https";
import net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import tls from "node:tls";

/** Jobs in one command. */
export const MAX_BATCH = 1000;

// Bytes of a command.
const MAX_LINE = 1022;

// How much higher the port for HTTP is.
const HTTP_BESIDE = 80;

/** Any error of this module. */
export class CarillonError extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = this.constructor.name;
  }
}

/** The server cannot be reached, or the connection ended before the answer came. */
export class ConnectionLost extends CarillonError {
  constructor(message, unknown, cause) {
    super(message, { cause });
    /** The command was sent. It was carried out, or not. */
    this.unknown = unknown;
  }
}

/** The server has answered that it does not do this. */
export class Refused extends CarillonError {
  constructor(command, reply) {
    super(`${command}: ${reply}`);
    /** The server's words, and the first of them. */
    this.reply = reply;
    this.word = reply.split(" ", 1)[0];
  }
}

/** There is no such job, schedule or tube, or this client does not hold the job. */
export class NotFound extends Refused {}

/** A worker holds the job. */
export class IsReserved extends Refused {}

/** Nothing of the batch was put, because of the job at `index`. `why`: "EXISTS 7 ready". */
export class BatchRefused extends Refused {
  constructor(command, reply) {
    super(command, reply);
    const [, number, ...why] = reply.split(" ");
    this.index = Number(number) - 1;
    this.why = why.join(" ");
  }
}

function putOf([result, id, state]) {
  return { id: Number(id), result, ...(state && { state }) };
}

/** A job with its body. Of a reserved job, the methods end or extend the reservation. */
export class Job {
  #client;

  constructor(client, id, body) {
    this.#client = client;
    this.id = id;
    /** A Buffer. */
    this.body = body;
    /** Deleted, released, buried or failed by these methods. */
    this.done = false;
  }

  get text() {
    return this.body.toString();
  }

  async delete() {
    await this.#client.delete(this.id);
    this.done = true;
  }

  async release(options) {
    await this.#client.release(this.id, options);
    this.done = true;
  }

  async bury(pri) {
    await this.#client.bury(this.id, pri);
    this.done = true;
  }

  async fail(error, options) {
    const failed = await this.#client.fail(this.id, error, options);
    this.done = true;
    return failed;
  }

  /** Lets the ttr begin anew. Resolves to true if somebody has asked for the job's cancel. */
  touch() {
    return this.#client.touch(this.id);
  }

  /**
   * Resolves to undefined if the job or its tube has a back-off; else to 1 s, doubled for each
   * attempt that has failed, up to an hour, less up to a quarter at random.
   */
  async delayOfFailure() {
    const stats = await this.#client.statsJob(this.id).catch((error) => {
      if (error.word === "FORBIDDEN") return { "backoff-ms": 0 }; // it is not held any more
      throw error;
    });
    if ("backoff-ms" in stats) return undefined;
    return Math.min(2 ** (stats.attempts ?? 0), 3600) * (1 - Math.random() / 4);
  }
}

// Options whose numbers are no seconds.
const NUMBERS = new Set(["pri", "max-attempts", "spans"]);
// Fields of HTTP whose numbers are seconds.
const SECONDS = new Set(
  ["every", "spread", "catch_up_window", "ttr", "expires_in", "over", "duration", "retention",
    "per", "initial", "backoff.max"],
);
// Fields of a schedule itself; its jobs have the others.
const OF_SCHEDULE = new Set(
  ["cron", "timeZone", "gap", "every", "start", "catchUp", "catchUpWindow", "overlap", "spread"],
);

// Values of onConflict with which a put replaces no job. One that does makes a new job if a worker
// has carried out the first one meanwhile.
const REPLACES_NONE = new Set([undefined, null, "reject", "ignore"]);

// What setTimeout takes, in ms.
const LONGEST_TIMER = 2 ** 31 - 1;

// Whether the same command may be answered well later.
const willPass = (error) =>
  error instanceof ConnectionLost ||
  (error instanceof Refused &&
    ["INTERNAL_ERROR", "OUT_OF_MEMORY", "TOO_FAST"].includes(error.word));

const rest = (ms, signal) => sleep(ms, undefined, { signal }).catch(() => {}); // it was aborted

const CRLF = Buffer.from("\r\n");
const bytes = (body) => (typeof body === "string" ? Buffer.from(body) : Buffer.from(body));

function ms(duration) {
  if (typeof duration !== "number") return String(duration);
  const nearest = Math.round(duration * 1000);
  return `${nearest / 1000 < duration ? nearest + 1 : nearest}ms`;
}

function value(name, given) {
  if (given instanceof Date) return given.toISOString();
  if (typeof given === "boolean") return given ? "yes" : "no";
  if (typeof given === "number" && !NUMBERS.has(name)) return ms(given);
  // Spaces are in its texts only.
  if (name === "attributes" && typeof given === "object")
    return JSON.stringify(given).replaceAll(" ", "\\u0020");
  const text = String(given);
  if (/[\r\n]/.test(text)) throw new TypeError(`${name}: "${text}" has a line's end`);
  if (!text.includes(" ") && !text.startsWith('"')) return text;
  if (text.includes('"'))
    throw new TypeError(`${name}: ${text} has a quote, and a space or the quote at its begin`);
  return `"${text}"`;
}

function words(options) {
  return Object.entries(options ?? {})
    .filter(([, given]) => given !== undefined && given !== null)
    .map(([key, given]) => {
      const name = key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
      return ` ${name}=${value(name, given)}`;
    })
    .join("");
}

function scalar(told) {
  if (told === "true" || told === "false") return told === "true";
  if (!/^".*"$/s.test(told)) return /^[0-9]+$/.test(told) ? Number(told) : told;
  return told
    .slice(1, -1)
    .replace(/\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|(.))/gs, (_, two, four, sign) =>
      sign ?? String.fromCharCode(parseInt(two ?? four, 16)),
    );
}

// Reads the subset of YAML that the server writes: fields, or a list.
function yaml(text) {
  const items = [];
  const fields = {};
  for (const line of text.split("\n").slice(1)) {
    if (line.startsWith("- ")) items.push(line.slice(2));
    const [name, ...rest] = line.split(": ");
    if (rest.length > 0) fields[name] = scalar(rest.join(": "));
  }
  return items.length > 0 ? items : fields;
}

// What JSON has for the value of this field.
function json(given, name = "") {
  if (given instanceof Date) return given.toISOString();
  if (typeof given === "number" && SECONDS.has(name)) return ms(given);
  const isPlain = given !== null && typeof given === "object" && !Array.isArray(given);
  if (!isPlain || name === "metadata" || name === "attributes") return given;
  const entries = Object.entries(given).map(([key, one]) => {
    const field = key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    return [field, json(one, name === "backoff" && field === "max" ? "backoff.max" : field)];
  });
  return Object.fromEntries(entries.filter(([, one]) => one !== undefined));
}

const query = (fields) => {
  const text = new URLSearchParams(json(fields ?? {})).toString();
  return text === "" ? "" : `?${text}`;
};

// What is not UTF-8 comes as Base64, and becomes a Buffer.
function withBuffers(_, given) {
  for (const name of given === null ? [] : Object.keys(Object(given)))
    if (name.endsWith("_base64")) {
      given[name.slice(0, -7)] = Buffer.from(given[name], "base64");
      delete given[name];
    }
  return given;
}

const isText = (data) => Buffer.from(data.toString()).equals(data);
const bodyField = (data) =>
  isText(data) ? { body: data.toString() } : { body_base64: data.toString("base64") };

const list = (told) => (Array.isArray(told) ? told : []);

function word(text) {
  if (text === "" || text.includes(" ")) throw new TypeError(`"${text}" is empty, or has a space`);
  return text;
}

const tubePath = (tube) => `/v1/tubes/${encodeURIComponent(tube)}`;
const schedulePath = (name) => `/v1/schedules/${encodeURIComponent(name)}`;

const named = (job) => (typeof job === "number" ? String(job) : `key=${word(job)}`);

// What comes over one connection, as lines and pieces of data.
class Wire {
  #chunks = [];
  #size = 0;
  #wanted = null;
  #error = null;

  static open(address, timeout) {
    return new Promise((resolve, reject) => {
      const socket = address.tls ? tls.connect(address) : net.connect(address);
      const connected = address.tls ? "secureConnect" : "connect";
      socket.setNoDelay(true);
      socket.setTimeout(timeout, () => socket.destroy(new Error("the server does not answer")));
      socket.once("error", reject);
      socket.once(connected, () => {
        socket.off("error", reject);
        socket.setTimeout(0);
        resolve(new Wire(socket));
      });
    });
  }

  constructor(socket) {
    this.socket = socket;
    socket.on("data", (chunk) => {
      this.#chunks.push(chunk);
      this.#size += chunk.length;
      this.#wanted?.check();
    });
    const end = (error) => {
      this.#error ??= error ?? new Error("the server has ended the connection");
      this.#wanted?.reject(this.#error);
    };
    socket.on("error", end);
    socket.on("end", () => end());
    socket.on("close", () => end());
  }

  get lost() {
    return this.#error !== null;
  }

  // Resolves when `ready` finds something in the buffer: it returns the length, or -1.
  #take(ready) {
    return new Promise((resolve, reject) => {
      const check = () => {
        const length = ready();
        if (length < 0) return;
        this.#wanted = null;
        const all = this.#whole();
        this.#chunks = [all.subarray(length)];
        this.#size = all.length - length;
        resolve(all.subarray(0, length));
      };
      this.#wanted = { check, reject };
      check();
      if (this.#wanted && this.#error) reject(this.#error);
    });
  }

  #whole() {
    if (this.#chunks.length !== 1) this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0];
  }

  async line() {
    const line = await this.#take(() => {
      const at = this.#whole().indexOf(CRLF);
      return at < 0 ? -1 : at + CRLF.length;
    });
    return line.subarray(0, -CRLF.length).toString();
  }

  async data(size) {
    const whole = size + CRLF.length;
    const data = await this.#take(() => (this.#size < whole ? -1 : whole));
    return data.subarray(0, size);
  }
}

/** A connection to a server; see the module for what happens when it is lost. */
export class Client {
  #address;
  #http; // options of a request
  #timeout;
  #tube;
  #watched = ["default"];
  #name;
  #token;
  #wire = null;
  #last = Promise.resolve();
  #closes = 0; // how often close() was called
  #deadlineSoon = false; // the last reserve was answered so

  /**
   * @param {object} [options] host, port, or path of a unix socket; http: where the server answers
   *   HTTP, { host, port } or { path }, if not at port + 80 or path + ".http"; tube in use; name of
   *   the client in stories; timeout: how many seconds an answer may take, and a connect. A reserve
   *   may take that much longer than asked for. token: what the server asks for, if it has tokens.
   *   tls: true if it speaks TLS, or options of tls.connect(), such as { ca }; its certificate must
   *   be for `host`. A wrong certificate rejects with ConnectionLost, and a wrong token with
   *   Refused.
   */
  constructor({ host = "127.0.0.1", port = 11300, path, ...options } = {}) {
    if (options.token !== undefined && !/^[!-~]+$/.test(options.token))
      throw new TypeError("the token is none: it is one word");
    this.#token = options.token;
    this.#address = path ? { path } : { host, port };
    if (options.tls && !path) {
      const servername = net.isIP(host) ? undefined : host;
      this.#address = { host, port, servername, ...Object(options.tls), tls: true };
    }
    const beside = path ? { path: `${path}.http` } : { host, port: port + HTTP_BESIDE };
    const { path: socketPath, ...rest } = { ...this.#address, ...(options.http ?? beside) };
    this.#http = { ...rest, socketPath: options.http?.port ? undefined : socketPath };
    this.#timeout = (options.timeout ?? 30) * 1000;
    this.#tube = options.tube ?? "default";
    this.#name = options.name;
  }

  /**
   * Ends the connection. Jobs that are reserved come back. Commands that are under way or wait for
   * others, and work(), reject with ConnectionLost. The next command connects anew.
   */
  close() {
    ++this.#closes;
    this.#drop();
  }

  #drop() {
    this.#wire?.socket.destroy();
    this.#wire = null;
  }

  // --- Producers.

  /** Puts, keys, peeks and kicks are of this tube from now on. */
  async use(tube) {
    await this.#call(`use ${tube}`, ["USING"], { again: true });
    this.#tube = tube;
  }

  /**
   * Puts a job. Options: delay, due, spread, pri, ttr, key, onConflict, keyWindow, group,
   * maxAttempts, backoff, jitter, lost, expiresIn, expiresAt, atExpiry, attributes (an object),
   * buried. Rejects with IsReserved if a worker holds the job that it should replace, or that has
   * its key and is to be cancelled. A tube whose rate of puts is used up is waited for, up to the
   * client's `timeout`; then it rejects with Refused, whose `word` is "TOO_FAST".
   * Of a job that exists `state` says whether it will run: "delayed", "ready", "reserved"; "buried"
   * and "dead" rest until somebody kicks or replaces them; "done": it is gone, and its keyWindow is
   * not over.
   * @returns {Promise<{id: number, result: "INSERTED"|"REPLACED"|"EXISTS", state?: string}>}
   */
  async put(body, options = {}) {
    const data = bytes(body);
    const replacesNone = REPLACES_NONE.has(options.onConflict ?? options["on-conflict"]);
    const reply = await this.#put(
      `put-job ${data.length}${words(options)}`,
      ["INSERTED", "REPLACED", "EXISTS"],
      { data, again: Boolean(options.key && options.keyWindow) && replacesNone },
    );
    return putOf(reply);
  }

  /**
   * Puts up to 1 000 jobs, all or none. Each is a body, or [body, its options]; `options` are of
   * all jobs. With a token `once` (and a `window`), the same batch is never put twice: repeat it
   * until it is answered. Rejects with BatchRefused if a job is in the way. Waits as put() does.
   */
  async putMany(jobs, options = {}) {
    const parts = [];
    for (const job of jobs) {
      const [body, own] = Array.isArray(job) ? job : [job, {}];
      const data = bytes(body);
      parts.push(Buffer.from(`${data.length}${words(own)}\r\n`), data, CRLF);
    }
    const data = Buffer.concat(parts);
    return this.#put(`put-jobs ${data.length}${words(options)}`, ["JOBS", "ALREADY"], {
      data,
      again: options.once !== undefined,
      read: async (reply) => {
        const puts = [];
        for (const line of await this.#lines(reply[1])) {
          puts.push(putOf(line.split(" ")));
        }
        return puts;
      },
    });
  }

  // Sends the command until the rate of the tube lets it in. Others are carried out meanwhile.
  async #put(command, good, how) {
    const end = performance.now() + this.#timeout;
    const closes = this.#closes;
    for (;;) {
      try {
        return await this.#call(command, good, how);
      } catch (error) {
        if (!(error instanceof Refused) || error.word !== "TOO_FAST") throw error;
        const ms = Math.max(Number(error.reply.split(" ")[1]), 1);
        if (performance.now() + ms > end) throw error;
        await sleep(ms);
        if (this.#closes !== closes) throw error;
      }
    }
  }

  // --- Workers.

  /** Reserves take jobs of these tubes, and of no others, from now on. */
  async watch(...tubes) {
    for (const tube of tubes) await this.#call(`watch ${tube}`, ["WATCHING"], { again: true });
    for (const tube of this.#watched.filter((one) => !tubes.includes(one)))
      await this.#call(`ignore ${tube}`, ["WATCHING"], { again: true });
    this.#watched = tubes;
  }

  /** Names this client in the stories of jobs. */
  async setName(name) {
    await this.#call(`name-client ${name}`, ["NAMED"], { again: true });
    this.#name = name;
  }

  /**
   * Waits for a job, at most `timeout` seconds, or for ever. Resolves to null when the time is up,
   * or a job that this client holds is about to run out of its ttr.
   */
  async reserve(timeout) {
    return (await this.reserveMany(1, timeout))[0] ?? null;
  }

  /** Waits for a job as `reserve`, and takes up to `most` that are ready then. */
  reserveMany(most, timeout) {
    return this.#call(
      `reserve-jobs ${most}${words({ timeout })}`,
      ["JOBS", "TIMED_OUT", "DEADLINE_SOON"],
      {
        again: true,
        patience: timeout === undefined ? Infinity : timeout * 1000,
        read: async (reply) => {
          this.#deadlineSoon = reply[0] === "DEADLINE_SOON";
          const jobs = [];
          for (let left = Number(reply[1] ?? 0); left > 0; --left)
            jobs.push(await this.#job((await this.#wire.line()).split(" ")));
          return jobs;
        },
      },
    );
  }

  /** Reserves this job, whether its time has come or not. */
  reserveJob(id) {
    return this.#call(`reserve-job ${id}`, ["RESERVED"], {
      again: true,
      read: (reply) => this.#job(reply),
    });
  }

  async delete(id) {
    await this.#call(`delete ${id}`, ["DELETED"]);
  }

  /** Deletes up to 1 000 jobs. Resolves to an array: whether each was deleted. */
  deleteMany(ids) {
    return this.#each("delete-jobs", ids, "", "DELETED");
  }

  /** Gives a reserved job back. Without `pri` it keeps its priority. */
  async release(id, options) {
    if (!(await this.releaseMany([id], options))[0])
      throw new NotFound(`release ${id}`, "NOT_FOUND");
  }

  /** Gives up to 1 000 reserved jobs back. Resolves to an array: whether this client held each. */
  releaseMany(ids, { pri, delay = 0 } = {}) {
    return this.#each("release-jobs", ids, words({ pri, delay }), "RELEASED");
  }

  async bury(id, pri = 65536) {
    await this.#call(`bury ${id} ${pri}`, ["BURIED"]);
  }

  /** Lets the ttr begin anew. Resolves to true if somebody has asked for the job's cancel. */
  async touch(id) {
    return (await this.#call(`touch-job ${id}`, ["TOUCHED", "CANCEL_ASKED"]))[0] !== "TOUCHED";
  }

  /**
   * Ends an attempt that has failed. The job comes again, or is dead, as its policy says. Options:
   * pri; delay instead of the back-off, and maxAttempts instead of the policy's.
   * @returns {Promise<{result: "AGAIN"|"DEAD"|"CANCELLED", attempts: number, delay: number}>}
   */
  async fail(id, error, options) {
    const data = bytes(String(error)).subarray(0, 65536);
    const reply = await this.#call(
      `fail-job ${id} ${data.length}${words(options)}`,
      ["AGAIN", "DEAD", "CANCELLED"],
      { data },
    );
    const attempts = reply[0] === "CANCELLED" ? 0 : Number(reply[1]);
    return { result: reply[0], attempts, delay: Number(reply[2] ?? 0) / 1000 };
  }

  /**
   * Calls `await handler(job)` for each job of the tubes until `signal` aborts, which is looked at
   * every `poll` seconds. If the handler returns, the job is deleted; if it throws anything, the
   * job has failed, with the error's text. It comes again after the back-off of the job or its
   * tube, and without one after 1 s, 2 s, 4 s, ... up to an hour. A handler may also end the job
   * itself, and a long one calls job.touch() now and then, as the ttr goes on.
   *
   * If the connection is lost, connects again for ever; the job that was under way comes again. If
   * the server's disk or memory is full, asks again. Rejects with ConnectionLost after close(), and
   * with Refused if the server refuses anything else.
   */
  async work(tubes, handler, { signal, poll = 1 } = {}) {
    const closes = this.#closes;
    await this.watch(...(Array.isArray(tubes) ? tubes : [tubes]));
    let pause = 100;
    while (!signal?.aborted && this.#closes === closes) {
      try {
        const job = await this.reserve(poll);
        if (job) await this.#carryOut(job, handler, signal);
        else if (this.#deadlineSoon) await rest(100, signal); // until then it is answered at once
        pause = 100;
      } catch (error) {
        if (!willPass(error)) throw error;
        if (this.#closes === closes) await rest(pause, signal);
        pause = Math.min(2 * pause, 5000);
      }
    }
    if (this.#closes === closes) return;
    // The end of the last job has made a connection anew.
    this.#last = this.#last.then(() => this.#drop());
    await this.#last;
    if (!signal?.aborted) throw new ConnectionLost("work: close() was called", false);
  }

  async #carryOut(job, handler, signal) {
    let failure = null;
    try {
      await handler(job);
    } catch (error) {
      failure = String(error);
    }
    let options;
    for (let pause = 100; !job.done; pause = Math.min(2 * pause, 5000)) {
      try {
        if (failure === null) await job.delete();
        else await job.fail(failure, (options ??= { delay: await job.delayOfFailure() }));
      } catch (error) {
        if (error instanceof NotFound) return; // its ttr was over: another worker has it
        if (!(error instanceof Refused && willPass(error)) || signal?.aborted) throw error;
        await rest(pause, signal);
      }
    }
  }

  // --- Anyone. `job` is an id, or the key of a job of the tube in use.

  /** The peeks resolve to null if there is no such job. */
  peek(job) {
    return this.#found(`peek-job ${named(job)}`);
  }

  peekReady() {
    return this.#found("peek-ready");
  }

  peekDelayed() {
    return this.#found("peek-delayed");
  }

  peekBuried() {
    return this.#found("peek-buried");
  }

  /**
   * Deletes a job that nobody has reserved, and resolves to true. With `ask`, a job that is
   * reserved is deleted when its reservation ends; resolves to false then. Else rejects with
   * IsReserved.
   */
  async cancel(job, { ask = false } = {}) {
    const command = `cancel-job ${named(job)}${ask ? " reserved=ask" : ""}`;
    return (await this.#call(command, ["CANCELLED", "CANCEL_ASKED"]))[0] === "CANCELLED";
  }

  /**
   * Changes a job that nobody has reserved: its body, pri, ttr, delay or due, expiresIn, expiresAt,
   * atExpiry, attributes. Resolves to its id.
   */
  async patch(job, { body, ...options }) {
    const data = body === undefined ? undefined : bytes(body);
    const size = data === undefined ? "" : ` body=${data.length}`;
    const command = `patch-job ${named(job)}${size}${words(options)}`;
    return Number((await this.#call(command, ["PATCHED"], { data }))[1]);
  }

  /**
   * Buries a job that nobody has reserved. Without `priority` it keeps its own. Resolves to its id.
   */
  async buryJob(job, priority) {
    const id = typeof job === "number" ? job : (await this.show(job)).id;
    await this.#ask("POST", `/v1/jobs/${id}:bury`, { priority }, true);
    return id;
  }

  /** Makes up to `most` buried jobs of the tube in use ready, or else delayed ones. */
  async kick(most) {
    return Number((await this.#call(`kick ${most}`, ["KICKED"]))[1]);
  }

  async kickJob(id) {
    await this.#call(`kick-job ${id}`, ["KICKED"]);
  }

  /** The last failed attempts of a job: at, ended, worker, error. */
  async story(id) {
    return (await this.show(id)).attempts;
  }

  stats() {
    return this.#told("stats");
  }

  statsJob(id) {
    return this.#told(`stats-job ${id}`);
  }

  /** The job with its body, its state, and when it is due and was put. */
  show(job) {
    const byKey = `${tubePath(this.#tube)}/keys/${encodeURIComponent(job)}`;
    return this.#ask("GET", typeof job === "number" ? `/v1/jobs/${job}` : byKey);
  }

  statsTube(tube) {
    return this.#told(`stats-tube ${tube}`);
  }

  statsGroup(tube, group) {
    return this.#ask("GET", `${tubePath(tube)}/groups/${encodeURIComponent(group)}`);
  }

  async tubes() {
    return list(await this.#told("list-tubes"));
  }

  async pauseTube(tube, seconds) {
    await this.#call(`pause-tube ${tube} ${seconds}`, ["PAUSED"]);
  }

  /**
   * Changes the settings of a tube: limits: { maxRunning: 10, rate: { jobs: 100, per: 60 } },
   * retry, retention, draining. What is not named stays, and null takes it away.
   */
  setTube(tube, fields) {
    return this.#ask("PATCH", tubePath(tube), fields, true);
  }

  /** The same for a group of a tube: its weight, and limits. */
  async setGroup(tube, group, fields) {
    await this.#ask("PATCH", `${tubePath(tube)}/groups/${encodeURIComponent(group)}`, fields, true);
  }

  // --- Many jobs of a tube. Filters say which: state ("delayed", "ready", "reserved", "buried",
  // "dead", or several: "ready,delayed"), group, keyPrefix, dueAfter, dueBefore.

  /**
   * Yields the jobs by their due times, then the buried ones. Asks for them page by page, of
   * `pageSize`. A job that moves meanwhile may come twice; `id` tells. With `bodies` each has its
   * body, or `body_error` if that is damaged.
   */
  async *listJobs(tube, { bodies = false, ...filters } = {}) {
    const fields = { ...filters, bodies: bodies || undefined };
    for await (const job of this.#list(`${tubePath(tube)}/jobs`, "jobs", fields)) {
      const lacksBody = bodies && !("body" in job) && !("body_error" in job); // a large one
      const found = lacksBody ? await this.peek(job.id) : null;
      if (found) yield { ...job, body: isText(found.body) ? found.text : found.body };
      else if (!lacksBody) yield job;
    }
  }

  /** Yields the groups of a tube: how many jobs they have, and what is set for them. */
  listGroups(tube) {
    return this.#list(`${tubePath(tube)}/groups`, "groups", {});
  }

  async *#list(path, of, fields) {
    for (let pageToken; pageToken !== null; ) {
      const asked = path + query({ pageSize: 1000, ...fields, pageToken });
      const page = await this.#ask("GET", asked).catch((error) => {
        // A tube that is not there has no jobs.
        if (of === "jobs" && error instanceof NotFound) return { jobs: [], next_page_token: null };
        throw error;
      });
      pageToken = page.next_page_token;
      yield* page[of];
    }
  }

  /**
   * Deletes jobs. With dryRun: true the four changes only count, and change nothing. If the
   * connection is lost half-way, call them again: they go on with the rest.
   * @returns {Promise<{jobs: number, left: number}>} `left`: reserved jobs, and those whose key is
   *   taken there.
   */
  cancelJobs(tube, filters) {
    return this.#change("cancel", tube, filters);
  }

  /** Makes buried and dead jobs ready; their attempts begin anew. */
  retryJobs(tube, filters) {
    return this.#change("retry", tube, filters);
  }

  /** Puts jobs into another tube, as they are. */
  moveJobs(tube, to, filters) {
    return this.#change("move", tube, filters, { to });
  }

  /**
   * Deals the delayed jobs that are due from dueAfter to dueBefore out evenly over a longer time,
   * which begins at dueAfter.
   */
  spreadJobs(tube, over, filters) {
    return this.#change("spread", tube, filters, { over });
  }

  async #change(verb, tube, { dryRun, max, ...filter } = {}, fields = {}) {
    const asked = { filter: { tube, ...filter }, dryRun, max, ...fields };
    let done = await this.#ask("POST", `/v1/jobs:${verb}`, asked);
    while (done.state === "running") {
      await sleep(100); // it takes long
      done = await this.#ask("GET", `/v1/operations/${done.id}`);
    }
    if (done.error) throw new Refused(`${verb} after ${done.changed} jobs`, `500 ${done.error}`);
    return { jobs: done.changed, left: done.left };
  }

  /**
   * Tells how many jobs are due when, in `spans`, and of all jobs. Options: by: "minute", "hour" or
   * "day", and how many spans.
   */
  dueCounts(tube, options) {
    return this.#ask("GET", `${tubePath(tube)}/due${query(options)}`);
  }

  // --- Schedules.

  /**
   * Makes or replaces a schedule. Fields: cron and timeZone, or every and start; gap, catchUp,
   * catchUpWindow, overlap, spread; and of its jobs tube, priority, ttr, group, retry, expiresIn,
   * atExpiry, contentType, metadata.
   */
  async setSchedule(name, body, fields) {
    const asked = { job: { tube: this.#tube, ...bodyField(bytes(body)) } };
    for (const [field, given] of Object.entries(fields))
      (OF_SCHEDULE.has(field) ? asked : asked.job)[field] = given;
    await this.#ask("PUT", schedulePath(name), asked, true);
  }

  async deleteSchedule(name) {
    await this.#ask("DELETE", schedulePath(name));
  }

  async pauseSchedule(name) {
    await this.#ask("POST", `${schedulePath(name)}:pause`, {}, true);
  }

  async resumeSchedule(name) {
    await this.#ask("POST", `${schedulePath(name)}:resume`, {}, true);
  }

  /** Puts the schedule's job now. Resolves to its id. */
  async triggerSchedule(name) {
    return (await this.#ask("POST", `${schedulePath(name)}:trigger`)).id;
  }

  /** Resolves to what is set, what it has done, and its next times. */
  showSchedule(name) {
    return this.#ask("GET", schedulePath(name));
  }

  /** Yields all schedules by name, without the bodies of their jobs. */
  listSchedules() {
    return this.#list("/v1/schedules", "schedules", {});
  }

  // --- Requests to the HTTP API.

  // Resolves to what the JSON of the answer has. `again`: it may be sent twice.
  async #ask(method, path, fields, again = method === "GET") {
    const closes = this.#closes;
    for (;;) {
      let sent = false;
      try {
        const [status, text] = await this.#send(method, path, fields, () => (sent = true));
        const told = text.startsWith("{") ? JSON.parse(text, withBuffers) : null;
        if (status < 300) return told;
        const kind = { 404: NotFound, 409: IsReserved }[status] ?? Refused;
        throw new kind(`${method} ${path}`, `${status} ${told?.detail ?? text.trim()}`);
      } catch (error) {
        if (error instanceof Refused) throw error;
        if (!sent || !again || this.#closes !== closes)
          throw new ConnectionLost(`${method} ${path}: ${error.message}`, sent && !again, error);
        again = false;
      }
    }
  }

  #send(method, path, fields, whenSent) {
    const headers = { Host: "localhost", "Content-Type": "application/json" };
    if (this.#token) headers.Authorization = `Bearer ${this.#token}`;
    const body = fields && JSON.stringify(json(fields));
    if (method !== "GET") headers["Content-Length"] = Buffer.byteLength(body ?? "");
    return new Promise((resolve, reject) => {
      const asked = { ...this.#http, method, path, headers, agent: false, timeout: this.#timeout };
      const request = (this.#address.tls ? https : http).request(asked, async (answer) => {
        try {
          const parts = [];
          for await (const part of answer) parts.push(part);
          resolve([answer.statusCode, Buffer.concat(parts).toString()]);
        } catch (error) {
          reject(error);
        }
      });
      request.on("socket", (socket) =>
        socket.once(this.#address.tls ? "secureConnect" : "connect", whenSent),
      );
      request.on("timeout", () => request.destroy(new Error("the server does not answer")));
      request.on("error", reject);
      request.end(body);
    });
  }

  // --- Commands and replies.

  // Sends a command when those before it are done, and resolves to read(words of the reply).
  // `again`: it may be sent twice.
  #call(command, good, how = {}) {
    // The server would refuse the line alone, and carry out the data as commands.
    if (/[\r\n\0]/.test(command)) throw new TypeError(`"${command}" has a line's end, or a NUL`);
    if (Buffer.byteLength(command) > MAX_LINE)
      throw new TypeError(`"${command.slice(0, 40)}"... has more than ${MAX_LINE} bytes`);
    const closes = this.#closes;
    const result = this.#last.then(() => this.#try(command, good, how, closes));
    this.#last = result.catch(() => {});
    return result;
  }

  // `closes`: how often close() had been called when the command was asked for.
  async #try(command, good, how, closes) {
    for (let again = how.again ?? false; ; again = false) {
      let sent = false;
      try {
        await this.#connect(closes);
        sent = true;
        return await this.#exchange(command, good, how);
      } catch (error) {
        // Without its tubes, the connection would work on others.
        if (!(error instanceof Refused) || !sent) this.#drop();
        if (error instanceof Refused) throw error;
        const closed = this.#closes !== closes;
        if (sent && again && !closed) continue;
        const why = closed ? "close() was called" : error.message;
        const verb = command.split(" ", 1)[0];
        throw new ConnectionLost(`${verb}: ${why}`, sent && !how.again, error);
      }
    }
  }

  async #exchange(command, good, { data, patience = 0, read = (reply) => reply }) {
    const { socket } = this.#wire;
    const longest = this.#timeout + patience;
    const timer =
      longest > LONGEST_TIMER
        ? null
        : setTimeout(() => socket.destroy(new Error("the server does not answer")), longest);
    try {
      socket.write(`${command}\r\n`);
      if (data) socket.write(Buffer.concat([data, CRLF]));
      const reply = await this.#wire.line();
      const answer = reply.split(" ");
      if (good.includes(answer[0])) return await read(answer);
      const kinds = { NOT_FOUND: NotFound, IS_RESERVED: IsReserved, REFUSED: BatchRefused };
      throw new (kinds[answer[0]] ?? Refused)(command.split(" ", 1)[0], reply);
    } finally {
      clearTimeout(timer);
    }
  }

  async #connect(closes) {
    const stop = () => {
      if (this.#closes !== closes) throw new Error("close() was called");
    };
    stop();
    if (this.#wire && !this.#wire.lost) return;
    this.#drop();
    this.#wire = await Wire.open(this.#address, this.#timeout);
    stop();
    const setup = [];
    if (this.#tube !== "default") setup.push(`use ${this.#tube}`);
    const more = this.#watched.filter((one) => one !== "default");
    for (const tube of more) setup.push(`watch ${tube}`);
    if (!this.#watched.includes("default")) setup.push("ignore default");
    if (this.#name) setup.push(`name-client ${this.#name}`);
    try {
      if (this.#token) await this.#exchange(`auth ${this.#token}`, ["AUTHENTICATED"], {});
      for (const command of setup)
        await this.#exchange(command, ["USING", "WATCHING", "NAMED"], {});
    } catch (error) {
      this.#drop(); // else the next command would work on another tube, or without the token
      throw error;
    }
  }

  async #lines(count) {
    const lines = [];
    for (let left = Number(count); left > 0; --left) lines.push(await this.#wire.line());
    return lines;
  }

  async #job(reply) {
    return new Job(this, Number(reply[1]), await this.#wire.data(Number(reply[2])));
  }

  async #found(command) {
    try {
      const read = (reply) => this.#job(reply);
      return await this.#call(command, ["FOUND"], { again: true, read });
    } catch (error) {
      if (error instanceof NotFound) return null;
      throw error;
    }
  }

  #told(command) {
    const read = async (reply) => yaml((await this.#wire.data(Number(reply[1]))).toString());
    return this.#call(command, ["OK"], { again: true, read });
  }

  async #each(verb, ids, options, good) {
    const data = Buffer.from([...ids].join(" "));
    const lines = await this.#call(`${verb} ${data.length}${options}`, ["JOBS"], {
      data,
      read: (reply) => this.#lines(reply[1]),
    });
    const failed = lines.filter((line) => line.startsWith("INTERNAL_ERROR"));
    if (failed.length > 0) {
      const what = `${failed.length} of ${lines.length} jobs are as they were`;
      throw new Refused(verb, `${failed[0]}: ${what}`);
    }
    return lines.map((line) => line.startsWith(good));
  }
}
