// Package page is the page at which a person plays the people of a fake platform: chats and
// their threads, what is said there, and a form to write, answer, edit and react as one of
// several people. What a platform has is behind World.
package page

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
)

const maxForm = 32 << 20

//go:embed page.html page.js page.css
var assets embed.FS

// Options say whose page it is.
type Options struct {
	Platform string        // "Telegram"
	Bot      string        // its name, as in "… is typing"
	Mention  string        // what one writes to mention it
	Emoji    []string      // to react with
	Typing   time.Duration // for how long the platform shows it
}

// Place is where somebody looks: a chat, a thread of it unless that is empty, as one person.
type Place struct {
	Chat, Thread, As string
}

// Chat is one chat. Whoever comes to it without saying as whom is its first person.
type Chat struct {
	ID, Name string
	People   []Person
	Threads  []Thread
	Whole    string // the name of the view without a thread; "" if there is none
}

// Thread is a thread, topic or post in a chat.
type Thread struct {
	ID, Name string
}

// Person is somebody who writes.
type Person struct {
	ID, Name string
	Bot      bool
}

// Message is what stands in a place.
type Message struct {
	ID        string
	From      Person
	Time      time.Time
	Thread    string // the name of the thread it is in, where others are shown beside it
	Branch    string // the id of the thread that hangs on it, or that writing there would start
	Answered  string // the message that it answers, in short
	Text      string
	Note      string // what is not text
	Photo     string // the id of a picture
	File      string // the id of another file
	FileName  string
	Edited    bool
	Reactions []string
}

// Draft is a message before it is sent.
type Draft struct {
	Text    string
	ReplyTo string
	File    *File
}

// File is a file with its content.
type File struct {
	Name string
	MIME string
	Data []byte
}

// World is the people's side of a platform. The errors are for the person at the page.
type World interface {
	// Changed returns a channel that is closed when anything happens.
	Changed() <-chan struct{}
	// Chats are all chats; of what belongs to people alone there is one each.
	Chats() []Chat
	// Messages are oldest first.
	Messages(at Place) []Message
	Post(at Place, d Draft) error
	Revise(at Place, id, text string) error
	// React sets a person's reaction; "" takes all of theirs back.
	React(at Place, id, emoji string) error
	// IsTyping reports whether the bot said so a moment ago, and has sent nothing since.
	IsTyping(at Place) bool
	File(id string) (File, bool)
}

// page serves the pages of one world.
type page struct {
	Options
	world World
	view  *template.Template
}

// New makes the page at / and what belongs to it. api gets what isAPI says is the platform's.
func New(o Options, world World, api http.Handler, isAPI func(path string) bool) http.Handler {
	p := &page{Options: o, world: world, view: template.Must(template.ParseFS(assets, "page.html"))}
	pages := http.NewServeMux()
	pages.HandleFunc("GET /{$}", p.show)
	pages.HandleFunc("GET /events", p.events)
	pages.HandleFunc("GET /files/{id}", p.file)
	pages.HandleFunc("POST /send", p.send)
	pages.HandleFunc("POST /react", p.react)
	for _, name := range []string{"page.js", "page.css"} {
		pages.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, assets, name) })
	}
	guarded := http.NewCrossOriginProtection().Handler(guard(pages))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isAPI(r.URL.Path) {
			api.ServeHTTP(w, r)
			return
		}
		guarded.ServeHTTP(w, r)
	})
}

// Local checks that an address to listen on is one of this machine: the page has no login.
func Local(addr string) error {
	if host, _, err := net.SplitHostPort(addr); err != nil || !loopback(host) {
		return fmt.Errorf("-addr %s: want an address of this machine, as in 127.0.0.1:8181; the page has no login", addr)
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// guard lets nobody in by a foreign name, which a site could have pointed at this machine.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if !loopback(host) {
			http.Error(w, "this page is for this machine only", http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Security-Policy", "default-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'")
		next.ServeHTTP(w, r)
	})
}

// where is the place that a request is about, and the message that is answered or edited.
type where struct {
	Place
	Reply, Edit string
}

func whereOf(values url.Values) where {
	return where{
		Place{values.Get("chat"), values.Get("topic"), values.Get("as")}, values.Get("reply"), values.Get("edit"),
	}
}

// link is the address of the page for another place, person or message.
func (w where) link(change func(*where)) string {
	change(&w)
	values := url.Values{}
	for name, value := range map[string]string{"chat": w.Chat, "topic": w.Thread, "as": w.As, "reply": w.Reply, "edit": w.Edit} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return "/?" + values.Encode()
}

// settle finds the chat, and the person and the thread where none of it is named.
func (p *page) settle(at *where) (Chat, bool) {
	chats := p.world.Chats()
	for _, c := range chats {
		if c.ID != at.Chat && at.Chat != "" {
			continue
		}
		at.Chat = c.ID
		if !c.has(at.As) {
			at.As = c.People[0].ID
		}
		if at.Thread == "" && c.Whole == "" && len(c.Threads) > 0 {
			at.Thread = c.Threads[0].ID
		}
		return c, true
	}
	return Chat{}, false
}

func (c Chat) has(person string) bool {
	for _, who := range c.People {
		if who.ID == person {
			return true
		}
	}
	return false
}

func (p *page) show(w http.ResponseWriter, r *http.Request) {
	at := whereOf(r.URL.Query())
	chat, found := p.settle(&at)
	if !found {
		http.Error(w, "no such chat", http.StatusNotFound)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	if err := p.view.Execute(w, p.look(at, chat)); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// events says "changed" whenever something happened, and once a while for what fades.
func (p *page) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	ticker := time.NewTicker(p.Typing)
	defer ticker.Stop()
	for {
		changed := p.world.Changed()
		if _, err := io.WriteString(w, "data: changed\n\n"); err != nil {
			return
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		select {
		case <-changed:
		case <-ticker.C:
		case <-r.Context().Done():
			return
		}
	}
}

func (p *page) file(w http.ResponseWriter, r *http.Request) {
	f, found := p.world.File(r.PathValue("id"))
	if !found {
		http.NotFound(w, r)
		return
	}
	// What a bot sent is shown as a picture or saved, and is never a page of this site.
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if detected := http.DetectContentType(f.Data); strings.HasPrefix(detected, "image/") {
		w.Header().Set("Content-Type", detected)
	} else {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", "attachment; filename="+strconv.QuoteToASCII(path.Base(f.Name)))
	}
	_, _ = w.Write(f.Data)
}

// send posts, answers or edits, as the form says.
func (p *page) send(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseMultipartForm(maxForm); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	file, err := attached(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text := strings.ReplaceAll(r.PostForm.Get("text"), "\r\n", "\n")
	p.act(w, r, func(at where) error {
		switch {
		case at.Edit != "":
			return p.world.Revise(at.Place, at.Edit, text)
		case text != "" || file != nil:
			return p.world.Post(at.Place, Draft{Text: text, ReplyTo: at.Reply, File: file})
		}
		return nil
	})
}

// attached is the file of a form, nil without one.
func attached(r *http.Request) (*File, error) {
	f, header, err := r.FormFile("file")
	if err != nil || header.Size == 0 {
		return nil, nil // the field is optional
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	return &File{Name: header.Filename, MIME: http.DetectContentType(data), Data: data}, nil
}

func (p *page) react(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<16)
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.act(w, r, func(at where) error {
		return p.world.React(at.Place, r.PostForm.Get("message"), r.PostForm.Get("emoji"))
	})
}

// act does what a form asks for and goes back to the place.
func (p *page) act(w http.ResponseWriter, r *http.Request, do func(where) error) {
	at := whereOf(r.PostForm)
	if _, found := p.settle(&at); !found {
		http.Error(w, "no such chat", http.StatusNotFound)
		return
	}
	if err := do(at); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	http.Redirect(w, r, at.link(func(w *where) { w.Reply, w.Edit = "", "" }), http.StatusSeeOther)
}
