package main

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

	"arizuko/pkg/fakeplatform/telegram"
)

const (
	maxForm = 32 << 20
	typing  = 5 * time.Second // how long Telegram shows it
)

//go:embed page.html page.js page.css
var assets embed.FS

// page is the people's side: HTML for a person, and the Bot API below it.
type page struct {
	tg     *telegram.Server
	people []telegram.User
	view   *template.Template
}

// newPage makes two people, a private chat, a group and a forum with topics.
func newPage(tg *telegram.Server) http.Handler {
	alice, bob := tg.User("Alice", "alice"), tg.User("Bob", "bob")
	p := &page{tg: tg, people: []telegram.User{alice, bob}, view: template.Must(template.ParseFS(assets, "page.html"))}
	tg.DM(alice)
	tg.Supergroup("Team", alice, bob)
	forum := tg.Forum("Operations", alice, bob)
	forum.Topic(alice, "deploys")
	forum.Topic(alice, "incidents")

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
		if strings.HasPrefix(r.URL.Path, "/bot") || strings.HasPrefix(r.URL.Path, "/file/") {
			tg.ServeHTTP(w, r)
			return
		}
		guarded.ServeHTTP(w, r)
	})
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

// where is the place, and the person, that a request is about.
type where struct {
	Chat, Thread, As int64
	Reply, Edit      int64
}

func whereOf(values url.Values) where {
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(values.Get(name), 10, 64) // 0 without one
		return n
	}
	return where{number("chat"), number("topic"), number("as"), number("reply"), number("edit")}
}

func (p *page) place(w where) (telegram.Place, bool) {
	for _, c := range p.tg.Chats() {
		if c.ID == w.Chat {
			return p.tg.Place(w.Chat, int(w.Thread)), true
		}
	}
	return telegram.Place{}, false
}

func (p *page) person(id int64) telegram.User {
	for _, u := range p.people {
		if u.ID == id {
			return u
		}
	}
	return p.people[0]
}

// link is the address of the page for another place, person or message.
func (w where) link(change func(*where)) string {
	change(&w)
	link := fmt.Sprintf("/?chat=%d&topic=%d&as=%d", w.Chat, w.Thread, w.As)
	if w.Reply != 0 {
		link += fmt.Sprintf("&reply=%d", w.Reply)
	}
	if w.Edit != 0 {
		link += fmt.Sprintf("&edit=%d", w.Edit)
	}
	return link
}

func (p *page) show(w http.ResponseWriter, r *http.Request) {
	at := whereOf(r.URL.Query())
	if at.Chat == 0 {
		at.Chat, at.As = p.people[0].ID, p.people[0].ID
	}
	place, found := p.place(at)
	if !found {
		http.Error(w, "no such chat", http.StatusNotFound)
		return
	}
	at.As = p.person(at.As).ID
	w.Header().Set("Cache-Control", "no-store")
	if err := p.view.Execute(w, p.look(at, place)); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// events says "changed" whenever something happened, and once a while for what fades.
func (p *page) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	ticker := time.NewTicker(typing)
	defer ticker.Stop()
	for {
		changed := p.tg.Changed()
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
	kind, name, data, found := p.tg.FileByID(r.PathValue("id"))
	if !found {
		http.NotFound(w, r)
		return
	}
	// What a bot sent is shown as a picture or saved, and is never a page of this site.
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if detected := http.DetectContentType(data); kind == "photo" && strings.HasPrefix(detected, "image/") {
		w.Header().Set("Content-Type", detected)
	} else {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", "attachment; filename="+strconv.QuoteToASCII(path.Base(name)))
	}
	_, _ = w.Write(data)
}

// send posts, answers or edits, as the form says.
func (p *page) send(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseMultipartForm(maxForm); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	at := whereOf(r.PostForm)
	place, found := p.place(at)
	if !found {
		http.Error(w, "no such chat", http.StatusNotFound)
		return
	}
	attachment, err := attached(r)
	text := strings.ReplaceAll(r.PostForm.Get("text"), "\r\n", "\n")
	switch {
	case err != nil:
	case at.Edit != 0:
		_, err = place.Revise(p.person(at.As), int(at.Edit), text)
	case text != "" || attachment != nil:
		_, err = place.Post(p.person(at.As), telegram.Draft{Text: text, ReplyTo: int(at.Reply), Attachment: attachment})
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	http.Redirect(w, r, at.link(func(w *where) { w.Reply, w.Edit = 0, 0 }), http.StatusSeeOther)
}

// attached is the file of a form, nil without one; a picture goes as a photo.
func attached(r *http.Request) (*telegram.Attachment, error) {
	f, header, err := r.FormFile("file")
	if err != nil || header.Size == 0 {
		return nil, nil // the field is optional
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	a := &telegram.Attachment{Kind: "document", Name: header.Filename, MIME: http.DetectContentType(data), Data: data}
	if strings.HasPrefix(a.MIME, "image/") {
		a.Kind = "photo"
	}
	return a, nil
}

func (p *page) react(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<16)
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	at := whereOf(r.PostForm)
	place, found := p.place(at)
	if !found {
		http.Error(w, "no such chat", http.StatusNotFound)
		return
	}
	id, _ := strconv.Atoi(r.PostForm.Get("message"))
	if err := place.SetReactions(p.person(at.As), id, strings.Fields(r.PostForm.Get("emoji"))...); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	http.Redirect(w, r, at.link(func(*where) {}), http.StatusSeeOther)
}
