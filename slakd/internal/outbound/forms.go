package outbound

import (
	"fmt"
	"slices"
	"strings"

	"arizuko/pkg/adapter"
	"arizuko/pkg/render"
	"arizuko/slakd/internal/slackapi"
)

// threadCodes are Slack's codes for a thread in which the bot cannot write: it was deleted, or is locked.
func threadCodes() []string {
	return []string{
		"thread_not_found", "invalid_thread_ts", "cannot_reply_to_message", "restricted_action_thread_locked",
		"thread_locked",
	}
}

// fileCodes are Slack's codes for files that it does not take.
func fileCodes() []string {
	return []string{
		"file_upload_size_restricted", "file_uploads_disabled", "file_uploads_except_images_disabled",
		"storage_limit_reached",
		"file_type_not_allowed", "blocked_file_type", "malware_detected", "missing_scope",
	}
}

// otherForm is the form in which a refused call may succeed, nil if there is none, and how it differs.
func otherForm(c call, err error) (other adapter.Part, remark string) {
	code := slackapi.Code(err)
	switch {
	case (len(c.buttons) > 0 || c.undo != 0) && (strings.HasPrefix(code, "invalid_blocks") ||
		strings.HasPrefix(code, "invalid_attachments")): // the text of a question has numbers
		c.buttons, c.undo = nil, 0
		return c, "sent without buttons: " + code
	case !c.sends():
		return nil, ""
	case c.thread != "" && slices.Contains(threadCodes(), code):
		c.thread = ""
		return c, fmt.Sprintf("sent to the channel: Slack refuses the thread (%s)", code)
	case c.method == uploadFile && slices.Contains(fileCodes(), code):
		notice := c.refusedFile() + code + ")."
		c.method, c.text, c.file = postMessage, notice, nil
		return c, "sent without the file: " + code
	}
	return nil, ""
}

// refusedFile begins the text that is sent in place of a file; Slack's code ends it.
func (c call) refusedFile() string {
	name := strings.ReplaceAll(c.file.Name, "`", "'")
	notice := render.Slack(fmt.Sprintf("Slack does not take the file `%s` (", name), maxText)[0]
	if c.text != "" {
		notice = c.text + "\n" + notice
	}
	return notice
}
