#!/bin/bash
# Read by scripts/release.sh and scripts/release/packages.sh: how an archive is named and packed.

# Prints the time of the commit: nothing in an archive is of this machine or this hour.
commit_time() { printf '%s' "${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}"; }

# The time of the commit, nobody's name, one order: nothing of this machine or this hour.
packed() { # folder, what in it
  LC_ALL=C tar --create --format=ustar --sort=name --mtime="@$(commit_time)" --owner=0 --group=0 --numeric-owner \
    --mode=u=rwX,go=rX --directory="$1" "$2" | gzip --no-name -9
}

is_windows() { case $1 in *-pc-windows-*) true ;; *) false ;; esac; } # target

# Prints the name of a target's archive. Windows unpacks a zip without other programs.
archive_name() { # version, target
  if is_windows "$2"; then printf 'plimsoll-%s-%s.zip' "$1" "$2"; else printf 'plimsoll-%s-%s.tar.gz' "$1" "$2"; fi
}

# Packs a folder as a zip on standard output, like `packed`: sorted, with the time of the commit in UTC and no extra fields. Python
# packs it, because it lets every field be set, and Info-ZIP would write its own version and the time zone of this machine.
packed_zip() { # folder, what in it
  python3 - "$1" "$2" "$(commit_time)" <<'PYTHON'
import os, sys, time, zipfile

folder, name, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3])
# A zip knows no time before 1980.
moment = max(time.gmtime(seconds)[:6], (1980, 1, 1, 0, 0, 0))
paths = [os.path.join(parent, file) for parent, _, files in os.walk(os.path.join(folder, name)) for file in files]
with zipfile.ZipFile(sys.stdout.buffer, "w") as archive:
    for path in sorted(paths, key=os.fsencode):
        entry = zipfile.ZipInfo(os.path.relpath(path, folder), moment)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.create_system = 3  # Unix: else some programs that unpack it show no modes
        entry.external_attr = (0o100755 if path.endswith(".exe") else 0o100644) << 16
        with open(path, "rb") as file:
            archive.writestr(entry, file.read(), compresslevel=9)
PYTHON
}
