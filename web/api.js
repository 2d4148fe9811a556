// The server: requests, with a token if it asks for one, and what it says is wrong.
//
//   const { body } = await api("POST", "/v1/tubes/mail:kick", { max: 10 });
//
// Throws Problem.
import { ask } from "./dialog.js";
import { Problem } from "./problem.js";

const TOKEN = "carillon-token";  // kept until the tab is closed

let asking = null;  // one question for all requests that wait for the token

async function contentOf(reply) {
  const text = await reply.text();
  const isJson = (reply.headers.get("Content-Type") || "").includes("json");
  return isJson && text ? JSON.parse(text) : text;
}

async function send(method, path, options, token) {
  const headers = { ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  try {
    return await fetch(path, { ...options, method, headers });
  } catch {
    throw new Problem(0, "The server does not answer.");
  }
}

// Asks until the server takes the token.
async function askForToken(isRefused) {
  let taken = null;
  while (taken === null) {
    taken = await ask("A token is needed", isRefused ?
      "The server does not take the token of before." : "The server asks who you are.", "Go on",
    [{ name: "token", label: "Token", type: "password", required: true, autocomplete: "off" }],
    async ({ token }) => {
      const { status } = await send("GET", "/v1/stats", {}, token);
      if (status !== 401) return token;
      const detail = "The server does not take this token.";
      throw new Problem(status, detail, [{ pointer: "/token", detail }]);
    }, false);
  }
  return taken;
}

// Returns the answer as it comes; `options` are those of fetch().
export async function open(method, path, options = {}) {
  const token = sessionStorage.getItem(TOKEN);
  const reply = await send(method, path, options, token);
  if (reply.status === 401) {
    asking ??= askForToken(Boolean(token)).finally(() => { asking = null; });
    sessionStorage.setItem(TOKEN, await asking);
    return open(method, path, options);
  }
  if (reply.ok) return reply;
  const { detail, errors } = await contentOf(reply);
  throw new Problem(reply.status, detail || `The server says ${reply.status}.`, errors);
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
