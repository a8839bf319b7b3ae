package inbound

import (
	"cmp"
	"strings"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// FilePrefix begins the reference of a file whose URL Slack has not sent: its id follows. So are files of
// another workspace, in channels shared by Slack Connect.
const FilePrefix = "slack-file:"

// attachments returns the files of a message and of its cards, and how many of them have to be downloaded.
func attachments(m *Message) (all []msg.Attachment, pending int) {
	for _, f := range filesOf(m) {
		kind, recorded := f.Mimetype, f.Subtype == "slack_audio" || f.DisplayType == "audio"
		if format, found := strings.CutPrefix(kind, "video/"); found && recorded {
			kind = "audio/" + format
		}
		a := adapter.NewAttachment(fileName(&f), kind, sizeOf(&f), reference(&f), unavailable(&f))
		a.Voice = recorded || f.Subtype == "slack_video"
		a.Duration = (max(f.DurationMS, 0) + 999) / 1000
		all = append(all, a)
	}
	return all, adapter.Pending(all)
}

// filesOf are the files of a message, of messages forwarded with it, and of emails, each once.
func filesOf(m *Message) []File {
	var all []File
	seen := map[string]bool{}
	add := func(files []File) {
		for _, f := range files {
			if f.ID != "" && seen[f.ID] || len(all) >= maxItems {
				continue
			}
			seen[f.ID] = true
			all = append(all, f)
			for _, p := range f.Parts {
				all = append(all, File{Name: p.Name, Mimetype: p.Mimetype, Size: p.Size, URL: p.URL})
			}
		}
	}
	add(m.Files)
	eachCard(m.Attachments, 0, func(a *Attachment) {
		add(a.Files)
		for _, m := range a.messages() {
			add(m.Files)
		}
	})
	return all
}

// eachCard calls do with the cards of a message and with those in them.
func eachCard(all []Attachment, depth int, do func(*Attachment)) {
	for i := range all {
		a := &all[i]
		do(a)
		if depth < maxForwards {
			eachCard(decodeAll[Attachment](a.Attachments), depth+1, do)
			for _, m := range a.messages() {
				eachCard(m.Attachments, depth+1, do)
			}
		}
	}
}

// reference names a file for Fetch.
func reference(f *File) string {
	if url := cmp.Or(f.DownloadURL, f.URL); url != "" && f.Access != "check_file_info" {
		return url
	}
	return FilePrefix + f.ID
}

// sizeOf is how many bytes are downloaded, 0 if Slack does not say: the sizes that it keeps of canvases, posts and
// emails are not those that it sends.
func sizeOf(f *File) int64 {
	switch f.Mode {
	case "", "hosted", "snippet":
		return f.Size
	}
	return 0
}

// fileName says what a canvas is, whose name has no extension.
func fileName(f *File) string {
	if f.Mode == "quip" || f.Mode == "canvas" {
		return cmp.Or(strings.TrimSpace(cmp.Or(f.Title, f.Name)), "canvas") + ".canvas.html"
	}
	return cmp.Or(f.Name, f.Title)
}

// unavailable is why a file cannot be downloaded from Slack, "" if it can.
func unavailable(f *File) string {
	switch {
	case f.Mode == "tombstone":
		return "it was deleted"
	case f.Mode == "hidden_by_limit":
		return "Slack hides it: the workspace is over its limit"
	case f.Mode == "list":
		return "it is a list, which can only be read in Slack"
	case f.External || f.Mode == "external":
		return "it is not stored on Slack"
	case f.Access == "access_denied", f.Access == "file_not_found":
		return "Slack gives no access to it"
	case f.ID == "" && f.DownloadURL == "" && f.URL == "":
		return "Slack sent no URL of it"
	}
	return ""
}
