package main

import (
	"encoding/json"
	"slices"

	"arizuko/pkg/agentproto"
)

// plan is the list of tasks that the model keeps with tools of Claude Code. It belongs to the process.
type plan []task

type task struct {
	id      string
	content string
	status  agentproto.StepStatus
}

// The tools that change the list: the first one replaces it, and is of older versions.
const (
	writeTodos = "TodoWrite"
	createTask = "TaskCreate"
	updateTask = "TaskUpdate"
	deleted    = "deleted" // as a status
)

func (plan) has(tool string) bool {
	return tool == writeTodos || tool == createTask || tool == updateTask
}

// apply makes the change of a call that has succeeded, and reports whether it was one.
func (p *plan) apply(c call, result json.RawMessage) bool {
	before := slices.Clone(*p)
	switch c.name {
	case writeTodos:
		*p = nil
		for _, item := range c.args.Todos {
			*p = append(*p, task{content: item.Content, status: agentproto.StepStatus(item.Status)})
		}
	case createTask:
		var made struct {
			Task struct {
				ID string `json:"id"`
			} `json:"task"`
		}
		if json.Unmarshal(result, &made) == nil && made.Task.ID != "" {
			*p = append(*p, task{made.Task.ID, c.args.Subject, agentproto.StepPending})
		}
	case updateTask:
		i := slices.IndexFunc(*p, func(t task) bool { return t.id == c.args.TaskID })
		switch {
		case i < 0:
		case c.args.Status == deleted:
			*p = slices.Delete(*p, i, i+1)
		default:
			(*p)[i].update(c.args)
		}
	}
	return !slices.Equal(before, *p)
}

func (t *task) update(args toolArgs) {
	if args.Status != "" {
		t.status = agentproto.StepStatus(args.Status)
	}
	if args.Subject != "" {
		t.content = args.Subject
	}
}

// entries are the steps that users see: the last ones if there are many.
func (p plan) entries(redact func(string) string) (steps []agentproto.Step) {
	for _, t := range p[max(0, len(p)-agentproto.MaxSteps):] {
		steps = append(steps, agentproto.Step{Content: redact(t.content), Status: t.status})
	}
	return steps
}
