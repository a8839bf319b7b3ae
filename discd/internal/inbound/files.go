package inbound

import (
	"cmp"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/msg"
)

// attachments returns the files of a message and of those it forwards, and how many of them have to be
// downloaded.
func attachments(m *discordapi.Message) (all []msg.Attachment, pending int) {
	files := m.Attachments
	for _, s := range m.Snapshots {
		if s.Message != nil {
			files = append(files[:len(files):len(files)], s.Message.Attachments...)
		}
	}
	for _, f := range files {
		a := msg.Attachment{
			Name: cmp.Or(f.Filename, "file"), MIME: cmp.Or(f.ContentType, "application/octet-stream"),
			Size: max(f.Size, 0), Ref: f.URL,
		}
		if a.Ref == "" {
			a.Error = "Discord sent no URL of the file"
		} else {
			pending++
		}
		all = append(all, a)
	}
	return all, pending
}

func hasFile(m *discordapi.Message) bool {
	all, _ := attachments(m)
	return len(all) > 0
}
