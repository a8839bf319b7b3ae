package groupfiles

import (
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
)

// SplitLong makes files of the tables and code blocks of a text that do not fit into one message of a chat's platform,
// by publish, and returns the text with a line in place of each. before are the bytes of the files that it has made. A
// block that publish makes no file of stays in the text.
func SplitLong(chat, text string, publish func(name, text string, before int64) (msg.Attachment, error)) (short string,
	files []msg.Attachment) {
	var replaced []render.Long
	var size int64
	for _, block := range render.FindLong(msg.FamilyOf(chat), text) {
		a, err := publish(block.Name, block.Text, size)
		if err != nil {
			continue
		}
		replaced, files = append(replaced, block), append(files, a)
		size += a.Size
	}
	return render.ReplaceLong(text, replaced), files
}
