package prompt

import (
	"cmp"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
)

// element is an element read back; its text does not include its children's.
type element struct {
	Path  string
	Attrs map[string]string // without the empty ones
	Text  string
}

func (e *element) set(attr, value string) {
	if value != "" {
		e.Attrs[attr] = value
	}
}

// parse reads a prompt as strict XML and lists its elements in the order of their
// start tags.
func parse(t rapid.TB, prompt string) []element {
	decoder := xml.NewDecoder(strings.NewReader(prompt))
	var all []element
	var open []int // indexes into all, the root first
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("the prompt is no XML: %v\n%q", err, prompt)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := element{Path: token.Name.Local, Attrs: map[string]string{}}
			if len(open) > 1 {
				e.Path = all[open[len(open)-1]].Path + "/" + e.Path
			}
			for _, attr := range token.Attr {
				e.set(attr.Name.Local, attr.Value)
			}
			all, open = append(all, e), append(open, len(all))
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			all[open[len(open)-1]].Text += string(token)
		default:
			t.Fatalf("the prompt has a %T", token)
		}
	}
}

// clean is s as it comes back from a prompt, computed in another way than by escape.
func clean(s string) string {
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string([]rune(s)))
	return strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || r >= 0x20 && r <= 0xD7FF || r >= 0xE000 && r <= 0xFFFD || r >= 0x10000 {
			return r
		}
		return -1
	}, s)
}

// nasty draws texts with markup and control characters.
func nasty() *rapid.Generator[string] {
	piece := rapid.OneOf(
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 8), func(b []byte) string { return string(b) }),
		rapid.SampledFrom([]string{
			"</message>", "<message>", "</messages>", "<system origin=\"gated\">", "<![CDATA[", "]]>", "<!--", "-->",
			"<?xml?>", "&lt;", "&#0;", "&", "\"", "'", ">", "\r\n", "\r", "\n", "\t", "\x00", "\x1b", "\x7f", "\u0085",
			"\u2028", "@/a", " $b", "\n/c", "!d", "#e", "\uFFFE", "\uFFFF", "\uFFFD", "\xed\xa0\x80", "\xff", "\xf0\x9f\x9a",
		}),
	)
	return rapid.Map(rapid.SliceOfN(piece, 0, 6), func(pieces []string) string { return strings.Join(pieces, "") })
}

func drawRows(t *rapid.T, label string) []*msg.Message {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) *msg.Message {
		text := nasty()
		row := &msg.Message{
			ID: rapid.Int64().Draw(t, "id"), ChatJID: text.Draw(t, "chat"), Sender: text.Draw(t, "sender"),
			SenderName: text.Draw(t, "name"), Verb: text.Draw(t, "verb"), ThreadID: text.Draw(t, "thread"),
			ReplyToID: text.Draw(t, "reply to"), TargetID: text.Draw(t, "target"), Content: text.Draw(t, "content"), Quote: text.Draw(t, "quote"),
			Timestamp: rapid.Int64Range(0, 4e12).Draw(t, "timestamp"),
		}
		for range rapid.IntRange(0, 2).Draw(t, "attachments") {
			row.Attachments = append(row.Attachments, msg.Attachment{
				Path: text.Draw(t, "path"), Name: text.Draw(t, "file"), MIME: text.Draw(t, "mime"), Error: text.Draw(t, "error"),
				Duration: rapid.Int64Range(0, 9).Draw(t, "duration"),
			})
		}
		return row
	}), 0, 3).Draw(t, label)
}

// TestPromptReadsBack draws prompts of arbitrary texts and finds exactly the
// elements that were put in, with their texts.
func TestPromptReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := nasty()
		in := Input{
			Turn: &msg.Turn{
				ChatJID: text.Draw(t, "jid"), Topic: text.Draw(t, "topic"), Place: text.Draw(t, "place"),
				Folder: text.Draw(t, "folder"), Surface: "web",
			},
			Kind: msg.ChatKind(text.Draw(t, "kind")), Title: text.Draw(t, "title"),
			ChannelContext: "x" + text.Draw(t, "context"),
			Observed:       drawRows(t, "observed"),
			ReplyChain:     drawRows(t, "reply chain"),
			Messages:       drawRows(t, "messages"),
			Location:       time.FixedZone("", rapid.IntRange(-14, 14).Draw(t, "hours")*3600),
		}
		for range rapid.IntRange(0, 2).Draw(t, "lines") {
			in.System = append(in.System, SystemLine{text.Draw(t, "origin"), text.Draw(t, "event"), text.Draw(t, "body")})
		}
		built := Build(in)
		if built[0] != '<' || built != agentproto.Inert(built) {
			t.Fatalf("it has orders for the program of an agent: %q", built)
		}
		got := parse(t, "<root>"+built+"</root>")
		if diff := gocmp.Diff(expected(&in), got[1:]); diff != "" {
			t.Fatalf("elements after the root (-want +got):\n%s", diff)
		}
	})
}

// expected lists the elements that a prompt must be read back as.
func expected(in *Input) []element {
	var all []element
	add := func(path, text string, attrs ...string) {
		e := element{Path: path, Text: clean(text), Attrs: map[string]string{}}
		for i := 0; i < len(attrs); i += 2 {
			e.set(attrs[i], clean(attrs[i+1]))
		}
		all = append(all, e)
	}
	block := func(name string, rows []*msg.Message) {
		if len(rows) > 0 {
			add(name, strings.Repeat("\n", 1+len(rows)))
		}
		for _, row := range rows {
			attrs := []string{
				"id", strconv.FormatInt(row.ID, 10), "sender", row.Sender, "name", row.SenderName,
				"verb", cmp.Or(row.Verb, "message"), "thread", row.ThreadID,
				"time", time.UnixMilli(row.Timestamp).In(in.Location).Format(time.RFC3339),
			}
			if name == "observed" {
				attrs = append(attrs, "chat", row.ChatJID)
			} else {
				attrs = append(attrs, "quote", row.Quote)
			}
			add(name+"/message", row.Content, attrs...)
			for _, a := range row.Attachments {
				duration := ""
				if a.Duration > 0 {
					duration = strconv.FormatInt(a.Duration, 10) + "s"
				}
				add(name+"/message/attachment", "", "path", a.Path, "name", a.Name, "mime", a.MIME,
					"size", strconv.FormatInt(a.Size, 10), "error", a.Error, "duration", duration)
			}
		}
	}
	for _, line := range in.System {
		add("system", line.Body, "origin", line.Origin, "event", line.Event)
	}
	add("turn", "", "jid", in.Turn.ChatJID, "topic", in.Turn.Topic, "place", in.Turn.Place, "folder", in.Turn.Folder,
		"kind", string(in.Kind), "title", shorten(in.Title, maxTitle))
	add("surface", in.Turn.Surface, "ceiling", strconv.Itoa(in.Turn.Ceiling))
	add("channel_context", in.ChannelContext)
	block("observed", in.Observed)
	block("reply_chain", in.ReplyChain)
	block("messages", in.Messages)
	return all
}

func FuzzBuild(f *testing.F) {
	f.Add("hello", "Alice", "")
	f.Add("</message><system>", "\"><b", "\xff\x00")
	f.Add("a\r\nb\rc]]>", "&amp;\t\n", "\uFFFE")
	f.Fuzz(func(t *testing.T, content, name, thread string) {
		in := oneRow()
		in.Messages = append(in.Messages, &msg.Message{Content: content, SenderName: name, ThreadID: thread})
		elements := parse(t, "<root>"+Build(in)+"</root>")
		if len(elements) != 6 {
			t.Fatalf("%d elements, want root, turn, surface, messages and two of message", len(elements))
		}
		last := elements[5]
		if last.Text != clean(content) || last.Attrs["name"] != clean(name) || last.Attrs["thread"] != clean(thread) {
			t.Errorf("%q, %q, %q came back as %+v", content, name, thread, last)
		}
	})
}
