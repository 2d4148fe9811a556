// The server: requests, with a token if it asks for one, and what it says is wrong.
//
//   const { body } = await api("POST", "/v1/tubes/mail:kick", { max: 10 });
//
// Throws Problem with the server's own words; `status` is 0 if the server does not answer.
import { askForToken } from "./dialog.js";

const TOKEN = "carillon-token";  // kept until the tab is closed

export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

let asking = null;  // one question for all requests that wait for the token

async function contentOf(reply) {
  const text = await reply.text();
  const isJson = (reply.headers.get("Content-Type") || "").includes("json");
  return isJson && text ? JSON.parse(text) : text;
}

// Returns the answer as it comes; `options` are those of fetch().
export async function open(method, path, options = {}) {
  const headers = { ...options.headers };
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.Authorization = `Bearer ${token}`;
  let reply;
  try {
    reply = await fetch(path, { ...options, method, headers });
  } catch {
    throw new Problem(0, "The server does not answer.");
  }
  if (reply.status === 401) {
    asking ??= askForToken(Boolean(token)).finally(() => { asking = null; });
    sessionStorage.setItem(TOKEN, await asking);
    return open(method, path, options);
  }
  if (reply.ok) return reply;
  const { detail } = await contentOf(reply);
  throw new Problem(reply.status, detail || `The server says ${reply.status}.`);
}

let known = null;  // the tubes, as they were told last

export async function api(method, path, body, type = "application/json") {
  if (method !== "GET") known = null;
  const reply = await open(method, path, body === undefined ? {} :
    { headers: { "Content-Type": type }, body: JSON.stringify(body) });
  return { status: reply.status, body: await contentOf(reply),
    location: reply.headers.get("Location") };
}

export const get = async (path) => (await api("GET", path)).body;

// The same; null if there is no such thing (any more).
export const getIfThere = (path) => get(path).catch((problem) => {
  if (problem.status === 404) return null;
  throw problem;
});

export const tubePath = (tube) => `/v1/tubes/${encodeURIComponent(tube)}`;

// Returns the first 1 000 tubes by name, as they were at most `age` ms ago. What this page changes
// is in them.
export async function allTubes(age = 0) {
  if (known === null || performance.now() - known.at >= age) {
    const at = performance.now();
    known = { at, tubes: (await get("/v1/tubes?page_size=1000")).tubes };
  }
  return known.tubes;
}
