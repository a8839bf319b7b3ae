package inbound

import (
	"cmp"

	"arizuko/pkg/msg"
)

// attachments returns the files of a message, and how many of them have to be downloaded.
func attachments(files []File) (all []msg.Attachment, pending int) {
	for i := range files {
		f := &files[i]
		a := msg.Attachment{
			Name: cmp.Or(f.Name, f.Title, "file"), MIME: cmp.Or(f.Mimetype, "application/octet-stream"),
			Size: max(f.Size, 0), Ref: cmp.Or(f.DownloadURL, f.URL),
		}
		if a.Error = unavailable(f); a.Error != "" {
			a.Ref = ""
		} else {
			pending++
		}
		all = append(all, a)
	}
	return all, pending
}

// unavailable is why a file cannot be downloaded from Slack, "" if it can.
func unavailable(f *File) string {
	switch {
	case f.Mode == "tombstone":
		return "it was deleted"
	case f.Mode == "hidden_by_limit":
		return "Slack hides it: the workspace is over its limit"
	case f.External || f.Mode == "external":
		return "it is not stored on Slack"
	case f.Access == "check_file_info", f.Access == "access_denied", f.Access == "file_not_found":
		return "Slack gives no access to it"
	case f.DownloadURL == "" && f.URL == "":
		return "Slack sent no URL of it"
	}
	return ""
}
