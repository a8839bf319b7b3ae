package gateway

import "container/heap"

// dueHeap has the chats that are to be loaded at a time, the earliest first.
type dueHeap struct{ chats []*chat }

// Len is of heap.Interface, as are the next four methods.
func (h *dueHeap) Len() int { return len(h.chats) }

// Less orders by the due time.
func (h *dueHeap) Less(i, j int) bool { return h.chats[i].state.Due < h.chats[j].state.Due }

// Swap keeps each chat's index.
func (h *dueHeap) Swap(i, j int) {
	h.chats[i], h.chats[j] = h.chats[j], h.chats[i]
	h.chats[i].index, h.chats[j].index = i, j
}

// Push adds a *chat at the end.
func (h *dueHeap) Push(x any) {
	c := x.(*chat)
	c.index = len(h.chats)
	h.chats = append(h.chats, c)
}

// Pop removes the last chat.
func (h *dueHeap) Pop() any {
	last := len(h.chats) - 1
	c := h.chats[last]
	h.chats[last], c.index = nil, -1
	h.chats = h.chats[:last]
	return c
}

// put adds a chat or moves it to its new due time. 0 is never.
func (h *dueHeap) put(c *chat) {
	switch {
	case c.state.Due == 0:
		h.remove(c)
	case c.index >= 0:
		heap.Fix(h, c.index)
	default:
		heap.Push(h, c)
	}
}

func (h *dueHeap) remove(c *chat) {
	if c.index >= 0 {
		heap.Remove(h, c.index)
	}
}

// earliest is the earliest due time, unix ms, 0 for none.
func (h *dueHeap) earliest() int64 {
	if len(h.chats) == 0 {
		return 0
	}
	return h.chats[0].state.Due
}

// takeDue removes a chat that is due, nil if none is.
func (h *dueHeap) takeDue(now int64) *chat {
	if len(h.chats) == 0 || h.chats[0].state.Due > now {
		return nil
	}
	return heap.Pop(h).(*chat)
}

// takeAll removes all chats.
func (h *dueHeap) takeAll() []*chat {
	all := h.chats
	h.chats = nil
	for _, c := range all {
		c.index = -1
	}
	return all
}
