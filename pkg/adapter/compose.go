package adapter

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"arizuko/pkg/msg"
)

// Composer makes parts of a platform's own type C out of what rows of each kind contain.
type Composer[C any] interface {
	// MessageID returns the message that a platform id names, "" if it names none. The ids of
	// edits and reactions begin with that of their message.
	MessageID(platformID string) string
	Texts(markdown string) []C
	// Files sends files with a text, which may be empty.
	Files(files []File, markdown string) []C
	// Reaction adds or removes the bot's reaction.
	Reaction(target, emoji string, remove bool) (C, error)
	// Edit turns the first part of an edited text into the edit of a message.
	Edit(target string, text C) C
	Delete(target string) C
	Poll(m *msg.Message, p *msg.Poll) ([]C, error)
}

// Compose makes the parts of a row. data is the data folder, which holds the attachments. An error
// means that the row can't be expressed on the platform.
func Compose[C any](c Composer[C], m *msg.Message, data string) (parts []C, err error) {
	switch m.Kind {
	case msg.KindFile:
		files, err := attachedFiles(data, m)
		if err != nil {
			return nil, err
		}
		parts = c.Files(files, m.Content)
	case msg.KindReaction, msg.KindEdit, msg.KindDelete:
		if parts, err = change(c, m); err != nil {
			return nil, err
		}
	case msg.KindPoll:
		poll, err := msg.ParsePoll(m.Content)
		if err != nil {
			return nil, err
		}
		if parts, err = c.Poll(m, poll); err != nil {
			return nil, err
		}
	default:
		parts = c.Texts(m.Content)
	}
	if len(parts) == 0 {
		return nil, errors.New("the row is empty")
	}
	return parts, nil
}

// change is for rows about another message. What does not fit into an edited message follows it.
func change[C any](c Composer[C], m *msg.Message) ([]C, error) {
	target := c.MessageID(m.TargetID)
	if target == "" {
		return nil, fmt.Errorf("invalid target of this %s: %.40q is not a message id", m.Kind, m.TargetID)
	}
	switch m.Kind {
	case msg.KindReaction:
		emoji, remove := strings.CutPrefix(m.Content, "-")
		part, err := c.Reaction(target, emoji, remove)
		return []C{part}, err
	case msg.KindDelete:
		return []C{c.Delete(target)}, nil
	}
	texts := c.Texts(m.Content)
	if len(texts) > 0 {
		texts[0] = c.Edit(target, texts[0])
	}
	return texts, nil
}

// File is an attachment of an outbound row. It is read when it is sent.
type File struct {
	Name, MIME string
	Path       string // on the disk
	Size       int64  // bytes
}

func attachedFiles(data string, m *msg.Message) (files []File, err error) {
	for _, a := range m.Attachments {
		path := filepath.Join(data, filepath.FromSlash(a.Path))
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("cannot read the file %.80q", a.Name)
		}
		files = append(files, File{Name: a.Name, MIME: a.MIME, Path: path, Size: info.Size()})
	}
	return files, nil
}

// Open opens the file. Its error is a permanent *Failure.
func (f *File) Open() (*os.File, error) {
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, &Failure{Class: msg.Permanent, Err: errors.New("the file can no longer be read")}
	}
	return file, nil
}

// TooLarge is the text that is sent in place of a file larger than limit, in bytes.
func (f *File) TooLarge(limit int64, takes string) string {
	return fmt.Sprintf("The file `%s` is larger than the %d MB that %s.", f.Name, limit>>20, takes)
}

// duplicateMark begins a copy of a part that may have arrived already.
const duplicateMark = "(possibly sent twice) "

// MarkDuplicate puts the mark of a possible duplicate in front of a text, unless the text is empty
// or would be longer than limit, as length measures it. shift is how many bytes were put in front.
func MarkDuplicate(text string, limit int, length func(string) int) (marked string, shift int) {
	if marked = duplicateMark + text; text == "" || length(marked) > limit {
		return text, 0
	}
	return marked, len(duplicateMark)
}
