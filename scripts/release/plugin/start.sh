#!/bin/sh
# Starts the program for this machine: `programs` has one folder for each, by the words of `uname -sm`.
exec "$(dirname "$0")/../programs/$(uname -sm)/@PROGRAM@" "$@"
