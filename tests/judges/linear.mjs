// Reads and writes comments with Linear's own package, and prints what it saw as JSON.
// node linear.mjs PACKAGE URL KEY ISSUE COMMENT
const [file, apiUrl, apiKey, issueId, commentId] = process.argv.slice(2);
const { LinearClient } = await import(file);
const client = new LinearClient({ apiKey, apiUrl });

const viewer = await client.viewer;
const issue = await client.issue(issueId);
const listed = (await issue.comments()).nodes.map((comment) => comment.body);
const read = (await client.comment({ id: commentId })).body;
// The package's errors carry the query; what counts is what the server said.
const refused = (error) => ({ kind: error.constructor.name, message: error.errors?.[0]?.message ?? error.message });
const twice = await client.createComment({ id: commentId, issueId, body: "again" }).then(() => null, refused);
const created = await (await client.createComment({ issueId, body: "made" })).comment;
const changed = (await (await client.updateComment(created.id, { body: "changed" })).comment).body;
const stranger = new LinearClient({ apiKey: "lin_api_wrong", apiUrl });
const unknownKey = await stranger.viewer.then(() => null, (error) => error.constructor.name);

console.log(JSON.stringify({ viewer: viewer.name, issue: issue.identifier, listed, read, twice, changed, unknownKey }));
