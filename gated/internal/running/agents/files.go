package agents

import (
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
func (f *files) link(folder string, rows []*msg.Message) error {
	for _, row := range rows {
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
