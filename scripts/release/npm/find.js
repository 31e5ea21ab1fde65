// Prints the path of the program for this machine: nothing else happens here, and nothing runs when npm installs. start.sh becomes
// that program. `plimsoll init` copies the programs out of npm's folders, so that no hook runs through node.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { version, homepage, optionalDependencies, plimsoll } = require('../package.json');

const wanted = `@plimsoll/${process.platform}-${process.arch}`;

function fail(words) {
  process.stderr.write(`error: ${words}\n`);
  process.exit(1);
}

function find() {
  try {
    return path.join(path.dirname(require.resolve(`${wanted}/package.json`)), 'bin',
      process.platform === 'win32' ? 'plimsoll.exe' : 'plimsoll');
  } catch {
    // npm does not install this package on Windows, but a shell of Linux or of Git may start a node of Windows.
    if (process.platform === 'win32') {
      const own = plimsoll.windowsPackages.find((name) => name === wanted);
      fail(own ? `this node is one for Windows. In WSL, install Node.js there; on Windows: npx ${own}@${version}`
        : 'there are no programs for Windows yet; use WSL');
    }
    const there = Object.keys(optionalDependencies);
    if (!there.includes(wanted)) {
      fail(`there is no program for ${process.platform}-${process.arch}; there are: ${there.join(', ')}. ` +
        `With Rust: cargo install --locked --git ${homepage} plimsoll`);
    }
    return fail(`the package ${wanted} is missing, which has the programs: npm was told to leave optional packages out ` +
      '(--omit=optional), or the lock file was made on another system. Install it: ' +
      `npm install --include=optional plimsoll@${version}, or npm install ${wanted}@${version}`);
  }
}

const program = find();
try {
  // Root may read what it may not start.
  if ((fs.statSync(program).mode & 0o111) === 0) throw new Error('it is not executable');
} catch (error) {
  fail(`cannot start ${program}: ${error.message}`);
}
process.stdout.write(`${program}\n`);
