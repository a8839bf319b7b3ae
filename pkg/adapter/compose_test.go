package adapter

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"arizuko/pkg/msg"
)

// words is a Composer that makes a part of each word.
type words struct{}

func (words) MessageID(id string) string {
	if strings.HasPrefix(id, "old:") {
		return ""
	}
	return id
}

func (words) Texts(markdown string, shows *msg.Ask) []string {
	parts := strings.Fields(markdown)
	if shows != nil {
		parts = append(parts, fmt.Sprint(shows.Options))
	}
	return parts
}

func (words) Files(files []File, markdown string) (parts []string) {
	for _, f := range files {
		parts = append(parts, fmt.Sprintf("file %s of %d", f.Name, f.Size))
	}
	return append(parts, strings.Fields(markdown)...)
}

func (words) Reaction(target, emoji string, remove bool) (string, error) {
	return fmt.Sprintf("react %s %s %v", target, emoji, remove), nil
}
func (words) Edit(target, text string) string { return "edit " + target + " " + text }

func (words) Undo(text string, turn int64) string { return fmt.Sprint(text, " [undo ", turn, "]") }

func (words) Delete(target string) string { return "delete " + target }

func (words) Poll(string, *msg.Message, *msg.Poll) ([]string, error) { return nil, nil }

func sentParts(ids ...string) (parts []msg.SentPart) {
	for _, id := range ids {
		parts = append(parts, msg.SentPart{PlatformID: id, Sent: true})
	}
	return parts
}

func TestCompose_Changes(t *testing.T) {
	target := func(kind msg.Kind, files int, parts []msg.SentPart, edits ...msg.SentEdit) *msg.Target {
		return &msg.Target{Kind: kind, Files: files, Parts: parts, Edits: edits}
	}
	text := func(ids ...string) *msg.Target { return target(msg.KindMessage, 0, sentParts(ids...)) }
	longer := msg.SentEdit{Content: "a b c", Parts: sentParts("", "", "9")}
	shorter := msg.SentEdit{Content: "a", Parts: sentParts("", "", "")}
	ask := &msg.Ask{State: msg.AskOpen, Options: []string{"yes", "no"}}
	failed := msg.SentEdit{Content: "a", Parts: []msg.SentPart{{}, {}}}
	for name, tt := range map[string]struct {
		row  msg.Message
		want string
	}{
		"edit by platform id":        {msg.Message{Kind: msg.KindEdit, TargetID: "1", Content: "x y"}, "edit 1 x, y"},
		"edit of one part":           {msg.Message{Kind: msg.KindEdit, Target: text("1"), Content: "x"}, "edit 1 x"},
		"longer":                     {msg.Message{Kind: msg.KindEdit, Target: text("1", "2"), Content: "x y z"}, "edit 1 x, edit 2 y, z"},
		"shorter":                    {msg.Message{Kind: msg.KindEdit, Target: text("1", "2", "3"), Content: "x"}, "edit 1 x, delete 2, delete 3"},
		"after a longer edit":        {msg.Message{Kind: msg.KindEdit, Target: target("", 0, sentParts("1", "2"), longer), Content: "x"}, "edit 1 x, delete 2, delete 9"},
		"after a shorter edit":       {msg.Message{Kind: msg.KindEdit, Target: target("", 0, sentParts("1", "2", "3"), shorter), Content: "x y"}, "edit 1 x, y"},
		"after both":                 {msg.Message{Kind: msg.KindEdit, Target: target("", 0, sentParts("1", "2"), longer, shorter), Content: "x y"}, "edit 1 x, y"},
		"after a failed edit":        {msg.Message{Kind: msg.KindEdit, Target: target("", 0, sentParts("1", "2"), failed), Content: "x y"}, "edit 1 x, edit 2 y"},
		"caption":                    {msg.Message{Kind: msg.KindEdit, Target: target(msg.KindFile, 1, sentParts("1")), Content: "x"}, "edit 1 x"},
		"text after a file":          {msg.Message{Kind: msg.KindEdit, Target: target(msg.KindFile, 1, sentParts("1", "2", "3")), Content: "x"}, "edit 2 x, delete 3"},
		"caption of two files":       {msg.Message{Kind: msg.KindEdit, Target: target(msg.KindFile, 2, sentParts("1", "2")), Content: "x y"}, "edit 1 x, y"},
		"empty edit":                 {msg.Message{Kind: msg.KindEdit, Target: text("1")}, "the row is empty"},
		"reaction":                   {msg.Message{Kind: msg.KindReaction, Target: text("1", "2"), Content: "👍"}, "react 1 👍 false"},
		"reaction to a file":         {msg.Message{Kind: msg.KindReaction, Target: target(msg.KindFile, 1, sentParts("1", "2")), Content: "-👍"}, "react 1 👍 true"},
		"question":                   {msg.Message{Kind: msg.KindMessage, Content: "x y", Ask: ask}, "x, y, [yes no]"},
		"question that has ended":    {msg.Message{Kind: msg.KindMessage, Content: "x", Ask: &msg.Ask{State: msg.AskAnswered, Options: ask.Options}}, "x, [yes no]"},
		"edit of a question":         {msg.Message{Kind: msg.KindEdit, Target: text("1"), Content: "x y", Ask: ask}, "edit 1 x, y"},
		"edit of a question's copy":  {msg.Message{Kind: msg.KindEdit, TargetID: "7", Content: "x", Ask: ask}, "edit 7 x"},
		"shorter edit of a question": {msg.Message{Kind: msg.KindEdit, Target: text("1", "2"), Content: "x", Ask: ask}, "edit 1 x, delete 2"},
		"answer":                     {msg.Message{Kind: msg.KindMessage, Content: "x y", TurnID: 5, UndoUntil: 1}, "x, y [undo 5]"},
		"empty answer":               {msg.Message{Kind: msg.KindMessage, TurnID: 5, UndoUntil: 1}, "the row is empty"},
		"edit of an answer":          {msg.Message{Kind: msg.KindEdit, Target: text("1"), Content: "x", TurnID: 5, UndoUntil: 1}, "edit 1 x"},
		"delete":                     {msg.Message{Kind: msg.KindDelete, Target: target(msg.KindFile, 1, sentParts("1", "2"))}, "delete 1, delete 2"},
		"target not sent":            {msg.Message{Kind: msg.KindEdit, Target: &msg.Target{Parts: []msg.SentPart{{}}}, Content: "x"}, "cannot edit a message that was not sent"},
		"target never claimed":       {msg.Message{Kind: msg.KindReaction, Target: &msg.Target{}, Content: "👍"}, "cannot react to a message that was not sent"},
		"id not known":               {msg.Message{Kind: msg.KindEdit, Target: text(""), Content: "x"}, "cannot edit a message whose id on the platform is not known"},
		"id of before a chat's move": {msg.Message{Kind: msg.KindEdit, Target: text("old:1"), Content: "x"}, "cannot edit a message whose id on the platform is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			parts, err := Compose(words{}, &tt.row, t.TempDir())
			got := strings.Join(parts, ", ")
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

func TestCompose_Files_AreInsideTheDataFolder(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(filepath.Join(data, "media"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		os.WriteFile(filepath.Join(data, "media", "a.txt"), []byte("four"), 0o600), os.WriteFile(filepath.Join(data, "..", "secret"), nil, 0o600),
		os.Symlink("../../secret", filepath.Join(data, "media", "link")), syscall.Mkfifo(filepath.Join(data, "media", "pipe"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"media/a.txt": "file a of 4", "../secret": "", "/etc/passwd": "", "media/link": "", "media/pipe": "", "media": "", "media/../media/a.txt": "file a of 4",
	} {
		row := &msg.Message{Kind: msg.KindFile, Attachments: []msg.Attachment{{Name: "a", Path: path}}}
		parts, err := Compose(words{}, row, data)
		if got := strings.Join(parts, ", "); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
}
