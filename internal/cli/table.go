// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"unicode/utf8"
)

// cell is one field of a table.
type cell struct {
	text  string
	color color
}

// table is a list of rows under headers. Widths are counted in characters, and colours are added after.
type table struct {
	headers []string
	rows    [][]cell
}

// columnGap lies between two columns, as kubectl has it.
const columnGap = 3

// add appends a row of plain cells, made safe to show, and returns it, so that single cells can be coloured.
func (t *table) add(texts ...string) []cell {
	row := make([]cell, 0, len(texts))
	for _, text := range texts {
		row = append(row, cell{text: inline(text)})
	}
	t.rows = append(t.rows, row)
	return row
}

// String lays the table out.
func (t *table) render(s style) string {
	widths := make([]int, len(t.headers))
	for i, header := range t.headers {
		widths[i] = utf8.RuneCountInString(header)
		for _, row := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i].text))
		}
	}
	var out strings.Builder
	header := make([]cell, 0, len(t.headers))
	for _, text := range t.headers {
		header = append(header, cell{text: text, color: bold})
	}
	writeRow(&out, s, header, widths)
	for _, row := range t.rows {
		writeRow(&out, s, row, widths)
	}
	return out.String()
}

func writeRow(out *strings.Builder, s style, row []cell, widths []int) {
	last := len(row) - 1
	for last > 0 && row[last].text == "" {
		last--
	}
	for i, c := range row[:last+1] {
		out.WriteString(s.paint(c.color, c.text))
		if i < last {
			out.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text)+columnGap))
		}
	}
	out.WriteByte('\n')
}
