package watch

import tea "charm.land/bubbletea/v2"

// An area is a part of the screen that the mouse can use: a pane with a list, or the row of tabs.
type area struct {
	x, y, width, height int
	list                *list // the rows of a pane; nil if it has none
	focus               int   // the pane
	head                int   // rows above the rows of the list
	click               func(x int)
}

// place notes where a pane is drawn. Its first row of the list is below its border, and below its header if it has one.
func (m *model) place(x, y, width, height, focus int, of *list) {
	a := area{x: x, y: y + bodyTop, width: width, height: height, list: of, focus: focus, head: 1}
	if (of == &m.agents.list || of == &m.tasks.list) && height >= headed {
		a.head++
	}
	m.areas = append(m.areas, a)
}

// bodyTop is the first row of the panes on the screen.
const bodyTop = 2

// clicked handles a click: of a tab, or of a row, which is selected. A click of the selected row opens it.
func (m *model) clicked(x, y int) {
	if m.line != nil || m.help {
		m.help = false
		return
	}
	if m.choice != nil || m.paper != nil {
		return
	}
	for _, a := range m.areas {
		if x < a.x || x >= a.x+a.width || y < a.y || y >= a.y+a.height {
			continue
		}
		if a.click != nil {
			a.click(x - a.x)
			return
		}
		m.focus[m.tab] = a.focus
		row := y - a.y - a.head
		if a.list == nil || row < 0 || row >= a.height-1-a.head || a.list.top+row >= a.list.of {
			return
		}
		if again := a.list.at == a.list.top+row; again {
			m.tabKey("enter")
			return
		}
		a.list.at = a.list.top + row
		m.bus.follow = m.bus.follow && a.list != &m.bus.rows
		return
	}
}

// wheel moves the part of the screen under the mouse, three rows at a time.
func (m *model) wheel(button tea.MouseButton, x, y int) {
	var key string
	switch button {
	case tea.MouseWheelUp:
		key = "up"
	case tea.MouseWheelDown:
		key = "down"
	default: // sideways
		return
	}
	for _, a := range m.areas {
		if a.list != nil && x >= a.x && x < a.x+a.width && y >= a.y && y < a.y+a.height {
			m.focus[m.tab] = a.focus
		}
	}
	for range 3 {
		switch {
		case m.help || m.line != nil:
		case m.paper != nil:
			m.paperKey(key)
		case m.choice != nil:
			m.choice.move(key)
		default:
			m.tabKey(key)
		}
	}
}
