// A host that follows the Skills extension strictly, built from the official client: it lists all skills of a server,
// gets each of them, walks their folders and reads and verifies their files. It prints what it found as JSON.
//
// node skills_host.mjs '{"url": "http://…/mcp"}'
// node skills_host.mjs '{"command": "skillshelf", "args": ["serve"]}'

import { createHash } from "node:crypto";

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { DIRECTORY_MIME_TYPE, SkillsClient } from "@modelcontextprotocol/client/ext/skills";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const server = JSON.parse(process.argv[2]);
const transport = server.url
  ? new StreamableHTTPClientTransport(new URL(server.url))
  : new StdioClientTransport({ ...server, env: process.env });
const client = new Client(
  { name: "skills-host", version: "1" },
  { versionNegotiation: { mode: { pin: "2026-07-28" } } },
);
await client.connect(transport);
const skills = new SkillsClient(client);

// An error is a result here: the test says which of them it expects.
async function attempt(action) {
  try {
    return await action();
  } catch (error) {
    return { error: `${error.name}: ${error.message}` };
  }
}

async function readFile(skill, uri) {
  const file = await skills.read(skill, uri);
  return {
    size: file.bytes.byteLength,
    sha256: createHash("sha256").update(file.bytes).digest("hex"),
    isText: file.text !== undefined,
    verified: file.verified,
  };
}

async function walk(uri) {
  const answer = await skills.readDirectory(uri);
  const found = [];
  for (const child of answer.resources) {
    if (child.mimeType === DIRECTORY_MIME_TYPE) found.push(...(await walk(child.uri)));
    else found.push(child.uri);
  }
  return found;
}

const report = {};
const listing = await attempt(() => skills.list());
for (const skill of listing.skills ?? []) {
  const got = await attempt(() => skills.get(skill.uri));
  const root = skill.uri.replace(/\/SKILL\.md$/, "");
  const walked = await attempt(() => walk(root));
  const uris = skill.resources === "dynamic" ? walked : skill.resources.map((file) => file.uri);
  const files = {};
  for (const uri of uris) files[uri] = await attempt(() => readFile(skill, uri));
  report[skill.frontmatter.name] = {
    frontmatter: skill.frontmatter,
    isDynamic: skill.resources === "dynamic",
    isSameWhenGot: JSON.stringify(got.skill) === JSON.stringify(skill),
    walked,
    files,
  };
}
console.log(JSON.stringify({ error: listing.error, directoryRead: skills.directoryRead, skills: report }));
await client.close();
