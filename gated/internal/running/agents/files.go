package agents

import (
	"arizuko/gated/internal/running/groupfiles"
	"arizuko/pkg/msg"
)

// Files copies files between the groups' folders and the media folder.
func (m *Manager) Files() *groupfiles.Files { return m.files }

// linkFiles copies the attachments of a turn's rows into the group's inbox and
// replaces their paths. An attachment that cannot be copied gets an error instead
// of a path: a lost file must not keep a message from its agent.
func (m *Manager) linkFiles(folder string, rows []*msg.Message) error {
	for _, row := range rows {
		for i := range row.Attachments {
			a := &row.Attachments[i]
			if a.Error != "" || a.Path == "" {
				a.Path = ""
				continue
			}
			taken, err := m.files.Take(folder, row, i)
			if err != nil {
				m.log.Warn("attachment not copied", "row", row.ID, "file", a.Path, "err", err)
				a.Path, a.Error = "", groupfiles.Problem(err)
				continue
			}
			a.Path = taken
		}
	}
	return nil
}
