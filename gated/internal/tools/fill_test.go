package tools

import (
	"strconv"
	"strings"
)

// fill puts the ids of the fixture into the arguments of an example.
func (f *fixture) fill(arguments string) string {
	return strings.NewReplacer(
		"OWN_MESSAGE", strconv.FormatInt(f.own.ID, 10), "FOREIGN_MESSAGE", strconv.FormatInt(f.foreign.ID, 10),
		"OWN_ANSWER", strconv.FormatInt(f.answer.ID, 10), "FOREIGN_ANSWER", strconv.FormatInt(f.foreignAnswer.ID, 10), "OWN_FILE", strconv.FormatInt(f.file.ID, 10),
		"OWN_REMINDER", strconv.FormatInt(f.ownReminder, 10), "FOREIGN_REMINDER", strconv.FormatInt(f.foreignReminder, 10),
		"OWN_POLL", strconv.FormatInt(f.ownPoll, 10), "FOREIGN_POLL", strconv.FormatInt(f.foreignPoll, 10),
		"OWN_CHAT", chat, "FOREIGN_CHAT", foreignChat,
	).Replace(arguments)
}
