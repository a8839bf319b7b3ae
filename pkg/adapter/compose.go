package adapter

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"arizuko/pkg/msg"
)

// Composer makes parts of a platform's own type C from the contents of rows of each kind.
type Composer[C any] interface {
	// MessageID returns the message that a platform id names, "" if it names none. The ids of
	// edits and reactions begin with that of their message.
	MessageID(platformID string) string
	// Texts makes the parts of a text. If the text shows a question, the last part has a button for each option, which
	// carries msg.ButtonData, where the platform has buttons; the text has the number of each option, too. The same
	// text and question give the same parts, also once the question has ended.
	Texts(markdown string, shows *msg.Ask) []C
	// Files sends files with a text, which may be empty.
	Files(files []File, markdown string) []C
	// Reaction adds or removes the bot's reaction.
	Reaction(target, emoji string, remove bool) (C, error)
	// Edit turns a part of an edited text into the edit of a message, which has no buttons afterwards.
	Edit(target string, text C) C
	Delete(target string) C
	// Poll makes the parts of a poll or, with the message of one as target, those that close it.
	Poll(target string, m *msg.Message, p *msg.Poll) ([]C, error)
}

// UndoComposer is the Composer of an Undoer.
type UndoComposer[C any] interface {
	// Undo puts the button that takes a turn back under a part of a text. It carries msg.UndoData.
	Undo(text C, turn int64) C
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
		target := c.MessageID(m.TargetID)
		if target == "" && m.TargetID != "" {
			return nil, fmt.Errorf("invalid target of this end of a poll: %.40q is not a message id", m.TargetID)
		}
		if parts, err = c.Poll(target, m, poll); err != nil {
			return nil, err
		}
	default:
		parts = c.Texts(m.Content, m.Ask)
		last := len(parts) - 1
		if u, ok := c.(UndoComposer[C]); ok && last >= 0 && m.UndoUntil != 0 {
			parts[last] = u.Undo(parts[last], m.TurnID)
		}
	}
	if len(parts) == 0 {
		return nil, errors.New("the row is empty")
	}
	return parts, nil
}

// change is for rows about another message.
func change[C any](c Composer[C], m *msg.Message) ([]C, error) {
	targets, err := targetsOf(c, m)
	if err != nil {
		return nil, err
	}
	switch m.Kind {
	case msg.KindReaction:
		emoji, remove := strings.CutPrefix(m.Content, "-")
		part, err := c.Reaction(targets[0], emoji, remove)
		return []C{part}, err
	case msg.KindDelete:
		var parts []C
		for _, target := range targets {
			parts = append(parts, c.Delete(target))
		}
		return parts, nil
	}
	return editParts(c, targets, c.Texts(m.Content, nil)), nil
}

// editParts edits the messages of a text, one after another. More messages follow if the text is longer now, and
// messages that are no longer needed are deleted.
func editParts[C any](c Composer[C], targets []string, texts []C) []C {
	if len(texts) == 0 {
		return nil
	}
	for i, target := range targets {
		if i < len(texts) {
			texts[i] = c.Edit(target, texts[i])
		} else {
			texts = append(texts, c.Delete(target))
		}
	}
	return texts
}

// targetsOf returns the ids of the messages that a row is about, at least one.
func targetsOf[C any](c Composer[C], m *msg.Message) (ids []string, err error) {
	if m.Target == nil {
		id := c.MessageID(m.TargetID)
		if id == "" {
			return nil, fmt.Errorf("invalid target of this %s: %.40q is not a message id", m.Kind, m.TargetID)
		}
		return []string{id}, nil
	}
	for _, part := range standing(c, m.Target, m.Kind) {
		id := c.MessageID(part.PlatformID)
		switch {
		case !part.Sent:
			return nil, fmt.Errorf("cannot %s a message that was not sent", changeVerb(m.Kind))
		case id == "" && len(ids) == 0:
			return nil, fmt.Errorf("cannot %s a message whose id on the platform is not known", changeVerb(m.Kind))
		case id != "":
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("cannot %s a message that was not sent", changeVerb(m.Kind))
	}
	return ids, nil
}

func changeVerb(kind msg.Kind) string {
	if kind == msg.KindReaction {
		return "react to"
	}
	return string(kind)
}

// standing returns the messages that a target consists of after its earlier edits. Of a message with files,
// an edit is about those with its text: the ones after the files, or the first file's caption.
func standing[C any](c Composer[C], t *msg.Target, kind msg.Kind) []msg.SentPart {
	now := slices.Clone(t.Parts)
	var files []msg.SentPart
	if t.Kind == msg.KindFile && len(now) > 0 {
		if len(now) > t.Files {
			files, now = now[:t.Files], now[t.Files:]
		} else {
			files, now = now[1:], now[:1]
		}
	}
	for _, e := range t.Edits {
		texts, before := len(c.Texts(e.Content, nil)), now
		now = nil
		for i := range max(len(before), len(e.Parts)) {
			sent := i < len(e.Parts) && e.Parts[i].Sent
			switch {
			case i < len(before) && (i < texts || !sent):
				now = append(now, before[i])
			case i >= len(before) && sent:
				now = append(now, e.Parts[i])
			}
		}
	}
	if kind == msg.KindEdit {
		return now
	}
	return append(files, now...)
}

// File is an attachment of an outbound row. It is read when it is sent.
type File struct {
	Name, MIME string
	Size       int64  // bytes
	data, path string // the data folder, and where in it the file is
}

// attachedFiles are the files of a row. No path and no link leads out of the data folder.
func attachedFiles(data string, m *msg.Message) (files []File, err error) {
	root, err := os.OpenRoot(data)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for _, a := range m.Attachments {
		path := filepath.FromSlash(a.Path)
		info, err := root.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			return nil, fmt.Errorf("cannot read the file %.80q", a.Name)
		}
		files = append(files, File{Name: a.Name, MIME: a.MIME, Size: info.Size(), data: data, path: path})
	}
	return files, nil
}

// Open opens the file. Its error is a permanent *Failure.
func (f *File) Open() (*os.File, error) {
	file, err := os.OpenInRoot(f.data, f.path)
	if err != nil {
		return nil, &Failure{Class: msg.Permanent, Err: errors.New("the file can no longer be read")}
	}
	return file, nil
}

// TooLarge is the text that is sent in place of a file larger than limit, in bytes.
func (f *File) TooLarge(limit int64, takes string) string {
	return fmt.Sprintf("The file `%s` is larger than the %d MB that %s.", f.Name, limit>>20, takes)
}

// Refused is the text that is sent in place of a file that a platform does not take in a chat.
func (f *File) Refused(platform string) string {
	return fmt.Sprintf("%s does not take the file `%s` here.", platform, f.Name)
}

// DuplicateMark begins a copy of a part that may have arrived already.
const DuplicateMark = "(possibly sent twice) "
