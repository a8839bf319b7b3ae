package inbound

import (
	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
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
		problem := ""
		if f.URL == "" {
			problem = "Discord sent no URL of the file"
		}
		all = append(all, adapter.NewAttachment(f.Filename, f.ContentType, f.Size, f.URL, problem))
	}
	return all, adapter.Pending(all)
}

func hasFile(m *discordapi.Message) bool {
	all, _ := attachments(m)
	return len(all) > 0
}
