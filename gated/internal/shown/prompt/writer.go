package prompt

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"arizuko/pkg/msg"
)

// writer writes the elements of a prompt, one a line.
type writer struct {
	strings.Builder
	location  *time.Location
	rowIDs    map[string]int64
	operators map[string]bool

	transcribed int // bytes of transcripts so far
}

func (w *writer) system(line SystemLine) {
	w.WriteString("<system")
	w.attr("origin", line.Origin)
	w.attr("event", line.Event)
	w.WriteByte('>')
	w.text(line.Body)
	w.WriteString("</system>\n")
}

func (w *writer) turn(in *Input) {
	t := in.Turn
	w.WriteString("<turn")
	w.attr("jid", t.ChatJID)
	w.attr("topic", t.Topic)
	w.attr("place", t.Place)
	w.attr("folder", t.Folder)
	w.optional("title", shorten(in.Title, maxTitle))
	w.optional("kind", string(in.Kind))
	w.WriteString("/>\n")
	if t.Surface != "" {
		w.WriteString("<surface")
		w.number("ceiling", int64(t.Ceiling))
		w.WriteByte('>')
		w.text(t.Surface)
		w.WriteString("</surface>\n")
	}
}

func (w *writer) observed(in *Input) {
	if len(in.Observed) == 0 {
		return
	}
	w.WriteString("<observed")
	if in.ObservedLeft > 0 {
		w.number("left_out", int64(in.ObservedLeft))
	}
	w.WriteString(">\n")
	for _, row := range in.Observed {
		w.open(row)
		w.optional("thread", row.ThreadID)
		w.attr("chat", row.ChatJID)
		w.optional("title", shorten(in.ChatTitles[row.ChatJID], maxTitle))
		w.content(row)
	}
	w.WriteString("</observed>\n")
}

// block writes rows of the turn's own chat.
func (w *writer) block(name string, rows []*msg.Message) {
	if len(rows) == 0 {
		return
	}
	w.WriteString("<" + name + ">\n")
	for _, row := range rows {
		w.open(row)
		w.reference("reply_to", row.ReplyToID)
		w.reference("target", row.TargetID)
		w.optional("thread", row.ThreadID)
		w.quote(row.Quote)
		w.content(row)
	}
	w.WriteString("</" + name + ">\n")
}

// open begins a message and leaves its start tag open for more attributes.
func (w *writer) open(row *msg.Message) {
	verb := row.Verb
	if verb == "" {
		verb = msg.VerbMessage
	}
	w.WriteString("<message")
	w.number("id", row.ID)
	w.attr("sender", row.Sender)
	w.attr("name", row.Speaker())
	if row.Direction != msg.Out && msg.IsOperator(w.operators, row.ChatJID, row.Sender) {
		w.attr("operator", "true")
	}
	w.optional("asked_by", row.OnBehalfOf)
	w.time("time", row.Timestamp)
	w.attr("verb", verb)
}

// quote writes the part of the answered message that the sender selected.
func (w *writer) quote(text string) {
	if len(text) > maxQuote {
		text = strings.ToValidUTF8(text[:maxQuote], "") + "…"
	}
	w.optional("quote", text)
}

// content ends the start tag and writes the rest of the message. No white space is
// added to the text, not even before an attachment.
func (w *writer) content(row *msg.Message) {
	w.WriteByte('>')
	w.text(row.Content)
	for i := range row.Attachments {
		w.attachment(&row.Attachments[i])
	}
	w.WriteString("</message>\n")
}

func (w *writer) attachment(a *msg.Attachment) {
	w.WriteString("<attachment")
	w.optional("path", a.Path)
	w.attr("name", a.Name)
	w.attr("mime", a.MIME)
	w.number("size", a.Size)
	if a.Duration > 0 {
		w.attr("duration", strconv.FormatInt(a.Duration, 10)+"s")
	}
	w.optional("error", a.Error)
	t := a.Transcript
	if t != nil && t.Text == "" {
		w.attr("transcript_error", cmp.Or(t.Error, msg.TranscriptLate))
	}
	if t == nil || t.Text == "" {
		w.WriteString("/>")
		return
	}
	w.WriteString(`><transcript by="machine">`)
	w.text(w.fit(t.Text))
	w.WriteString("</transcript></attachment>")
}

// fit cuts a transcript to the room that the prompt has for transcripts.
func (w *writer) fit(text string) string {
	room := maxTranscripts - w.transcribed
	if len(text) > room {
		text = strings.ToValidUTF8(text[:room], "") + msg.CutMark
		w.transcribed = maxTranscripts
		return text
	}
	w.transcribed += len(text)
	return text
}

func (w *writer) attr(name, value string) {
	w.begin(name)
	escape(&w.Builder, value, true)
	w.WriteByte('"')
}

// optional writes an attribute unless it is empty.
func (w *writer) optional(name, value string) {
	if value != "" {
		w.attr(name, value)
	}
}

// reference writes another row's messages.id. An unknown row is left out: the
// platform's own id would be taken for one.
func (w *writer) reference(name, platformID string) {
	if id := w.rowIDs[platformID]; platformID != "" && id != 0 {
		w.number(name, id)
	}
}

func (w *writer) number(name string, n int64) {
	var digits [20]byte // of the smallest int64, sign included
	w.begin(name)
	w.Write(strconv.AppendInt(digits[:0], n, 10))
	w.WriteByte('"')
}

// time writes unix milliseconds as RFC 3339, to the second.
func (w *writer) time(name string, ms int64) {
	var stamp [len(time.RFC3339)]byte
	w.begin(name)
	w.Write(time.UnixMilli(ms).In(w.location).AppendFormat(stamp[:0], time.RFC3339))
	w.WriteByte('"')
}

func (w *writer) begin(name string) {
	w.WriteByte(' ')
	w.WriteString(name)
	w.WriteString(`="`)
}

func (w *writer) text(s string) {
	escape(&w.Builder, s, false)
}

// shorten bounds a text to so many characters.
func shorten(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
