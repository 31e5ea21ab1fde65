#!/bin/sh
echo "$1" >> "$HOME/waits.log"
exec /bin/sleep 0.02
