#!/bin/sh
# Makes an agent of a command that reads a prompt and prints an answer, as in: filter.sh llm
# It needs jq. What the command says on stderr is in the run's log.
while IFS= read -r line; do
  case $(printf '%s\n' "$line" | jq -r .type) in
    start | message) ;;
    *) continue ;; # an interrupt, or what later versions say: here is nothing under way
  esac
  turn=$(printf '%s\n' "$line" | jq -r .turnId)
  status=ok error=
  if ! answer=$(printf '%s\n' "$line" | jq -r .prompt | "$@"); then
    status=error error="$1 failed"
  fi
  echo ---ARIZUKO_OUTPUT_START---
  printf '%s' "$answer" | jq -Rs --arg turn "$turn" --arg status "$status" --arg error "$error" \
    '{status: $status, result: ., error: $error, turnId: $turn}'
  echo ---ARIZUKO_OUTPUT_END---
done
