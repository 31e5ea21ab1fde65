#!/usr/bin/env node
// Finds the program for this machine and starts it: nothing else happens here, and nothing runs when npm installs. `plimsoll init`
// copies the programs out of npm's folders, so that no hook runs through node.
'use strict';

const { spawn } = require('node:child_process');
const path = require('node:path');
const { version, optionalDependencies } = require('../package.json');

const wanted = `@plimsoll/${process.platform}-${process.arch}`;

function fail(words) {
  process.stderr.write(`plimsoll: ${words}\n`);
  process.exit(1);
}

function find() {
  try {
    return path.join(path.dirname(require.resolve(`${wanted}/package.json`)), 'bin', 'plimsoll');
  } catch {
    const there = Object.keys(optionalDependencies);
    if (!there.includes(wanted)) {
      fail(`there is no program for ${process.platform}-${process.arch}; there are: ${there.join(', ')}. ` +
        'With Rust: cargo install --locked plimsoll');
    }
    return fail(`the package ${wanted} is missing, which has the programs: npm was told to leave optional packages out ` +
      '(--omit=optional), or the lock file was made on another system. Install it: ' +
      `npm install --include=optional plimsoll@${version}, or npm install ${wanted}@${version}`);
  }
}

const program = find();
const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
child.on('error', (error) => fail(`cannot start ${program}: ${error.message}`));

// A terminal sends these to the program, too, and a second one means more: they are passed on only where there is none.
for (const signal of ['SIGINT', 'SIGHUP', 'SIGQUIT']) {
  process.on(signal, () => { if (!process.stdin.isTTY) child.kill(signal); });
}
process.on('SIGTERM', () => child.kill('SIGTERM'));

child.on('exit', (code, signal) => {
  if (signal === null) process.exit(code);
  // End as the program did.
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
