package agents

import (
	"context"
	"errors"

	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/running/groupfiles"
	"arizuko/pkg/disk"
	"arizuko/pkg/msg"
)

// files are the files of messages, as agents get and send them. It keeps nothing that changes.
type files struct {
	env    *env
	groups *groupfiles.Files
}

func newFiles(e *env, g *groups) *files {
	f := &files{e, &groupfiles.Files{Data: e.cfg.Data, Dir: g.dir, Log: e.log}}
	if e.cfg.MediaQuota > 0 {
		f.groups.Usage = &disk.Usage{Folder: f.groups.MediaFolder(), Quota: e.cfg.MediaQuota, Now: e.cfg.Now}
	}
	return f
}

// link copies the attachments of a turn's rows into the group's inbox and
// replaces their paths. An attachment that cannot be copied gets an error instead
// of a path: a lost file must not keep a message from its agent.
func (f *files) link(folder string, messages []*msg.Message) error {
	for _, row := range messages {
		for i := range row.Attachments {
			a := &row.Attachments[i]
			if a.Error != "" || a.Path == "" {
				a.Path = ""
				continue
			}
			copied, err := f.groups.Take(folder, row, i)
			if err != nil {
				f.env.log.Warn("attachment not copied", "row", row.ID, "file", a.Path, "err", err)
				a.Path, a.Error = "", groupfiles.Problem(err)
				continue
			}
			a.Path = copied
		}
	}
	return nil
}

// dayMS is the time in which the files of a chat are counted, in ms.
const dayMS = 24 * 60 * 60 * 1000

// attachLong makes files of the tables and code blocks of an answer that do not fit into one message of its platform,
// and returns the text with a line in place of each. A block for which there is no room as a file stays in the text.
func (f *files) attachLong(t *msg.Turn, text string, run *runInfo) (short string, files []msg.Attachment) {
	stored, err := f.env.st.Turn(f.env.ctx, t.ID)
	if err != nil || stored == nil {
		return text, nil // the write that follows meets the same error, and repeats itself
	}
	escalated, err := rows.Escalated(f.env.ctx, f.env.st.Reader, stored)
	if err != nil || escalated { // then another group gets the answer
		return text, nil
	}
	chat := stored.ChatJID
	return groupfiles.SplitLong(chat, text, func(name, text string, before int64) (msg.Attachment, error) {
		a, err := f.attachText(chat, name, run.setup.redact(text), before)
		if err != nil {
			f.env.log.Warn("long block not sent as a file", "turn", t.ID, "run", run.row.ID, "chat", chat, "file", name,
				"err", err)
		}
		return a, err
	})
}

// attachText stores a text as a file of a message into a chat, if the chat's files of the day, and the bytes before it
// of the same message, leave room for it.
func (f *files) attachText(chat, name, text string, before int64) (a msg.Attachment, err error) {
	size := int64(len(text))
	if limit := f.env.cfg.MediaDaily; limit > 0 {
		stored, err := f.env.st.ChatFileBytes(f.env.ctx, chat, f.env.now()-dayMS)
		if err != nil {
			return a, err
		}
		if stored+before+size > limit {
			return a, errors.New("the chat's files of the day leave no room for it (MEDIA_DAILY)")
		}
	}
	return f.groups.PublishText(name, text, f.env.cfg.Now())
}

// discard removes the files of an answer that was not stored.
func (f *files) discard(ctx context.Context, files []msg.Attachment) {
	for _, a := range files {
		if err := f.groups.Discard(a); err != nil && ctx.Err() == nil {
			f.env.log.Error("file of an answer that is not sent stays", "file", a.Path, "err", err)
		}
	}
}
