package pages

import (
	"fmt"
	"html/template"
	"net/http"
)

// View is a page for operators: its frame, and a fragment that the page renders again while it is open.
type View struct {
	Title   string
	Section string // the path of the link in the navigation that is current
	// of the fragment's content; an open page fetches it again as JSON from its own address, "" for not
	Tag      string
	Login    string        // of the operator
	Fragment template.HTML // from Fragment
	// Notice and Problem are the result of the form that was sent, "" for none.
	Notice, Problem string
	Up              []Link // the pages above this one
	Requests        int    // of chats that wait for an operator, beside the link to them
}

// Link leads to another page.
type Link struct{ Path, Text string }

// View writes a page.
func (p *Pages) View(w http.ResponseWriter, status int, v View) {
	p.page(w, status, "view.html", v)
}

// Fragment renders a template that is part of a page.
func (p *Pages) Fragment(name string, data any) (template.HTML, error) {
	b := newBuffer()
	defer buffers.Put(b)
	if err := p.templates.ExecuteTemplate(b, name, data); err != nil {
		return "", fmt.Errorf("render %s: %w", name, err)
	}
	return template.HTML(b.String()), nil
}

// navGroup is links of the navigation that stand together.
type navGroup struct {
	Title string
	Links []Link
}

// Section is the link of the navigation to a path.
func Section(path string) (found Link) {
	for _, group := range navigation() {
		for _, link := range group.Links {
			if link.Path == path {
				found = link
			}
		}
	}
	return found
}

// navigation is all pages that have a link of their own.
func navigation() []navGroup {
	return []navGroup{
		{"Now", []Link{{"/", "Overview"}, {"/search", "Search"}, {"/messages", "Messages"}, {"/turns", "Turns"},
			{"/figures", "Figures"}, {"/spend", "Spend"}, {"/lost", "Lost and found"}}},
		{"Chats", []Link{{"/chat/", "Web chat"}, {"/chats", "Chats"}, {"/approvals", "Approvals"},
			{"/engagement", "Engagement"}, {"/reminders", "Reminders"}, {"/polls", "Polls"}}},
		{"Setup", []Link{{"/groups", "Groups"}, {"/routes", "Routes"}, {"/access", "Access"}, {"/egress", "Egress"},
			{"/notifications", "Notifications"}, {"/settings", "Settings"}, {"/audit", "Changes"}}},
	}
}
