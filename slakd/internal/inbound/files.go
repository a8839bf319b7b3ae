package inbound

import (
	"cmp"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// attachments returns the files of a message, and how many of them have to be downloaded.
func attachments(files []File) (all []msg.Attachment, pending int) {
	for i := range files {
		f := &files[i]
		all = append(all, adapter.NewAttachment(cmp.Or(f.Name, f.Title), f.Mimetype, f.Size, cmp.Or(f.DownloadURL, f.URL), unavailable(f)))
	}
	return all, adapter.Pending(all)
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
