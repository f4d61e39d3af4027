package watch

func (m *model) drawOverview(width, height int) []string {
	focus := m.focus[tabOverview]
	if m.single() {
		switch focus {
		case 1:
			return m.tasksPane(width, height, true)
		case 2:
			return m.agentDetail(width, height, true)
		}
		return m.agentsPane(width, height, true)
	}
	upper := min(max(4, len(m.agents.seen)+2), max(4, height*2/5))
	left := width * 4 / 7
	lower := height - upper
	return append(m.agentsPane(width, upper, focus != 1),
		beside(m.tasksPane(left, lower, focus == 1), m.agentDetail(width-left, lower, false))...)
}
