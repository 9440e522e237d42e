// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// readEntries reads an index, in YAML or JSON, until the entries of the chart have ended. It takes time in proportion to the
// bytes, and little memory: nothing but one line and one entry at a time is kept. Package yaml, with costs that are not bounded in
// that way, reads only the few lines of an entry that matter (ADR 32).
func readEntries(r io.Reader, c *chooser) error {
	buffered := bufio.NewReaderSize(r, lineBuffer)
	if mark, _ := buffered.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = buffered.Discard(len(byteOrderMark)) // as much is in the buffer
	}
	start, err := buffered.Peek(lookAhead)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch start = bytes.TrimLeft(start, " \t\r\n"); {
	case len(start) == 0 && err != nil:
		return fetch.Errorf(fetch.InvalidContent, "it is empty")
	case bytes.HasPrefix(start, []byte("{")):
		return readJSON(buffered, c)
	case bytes.HasPrefix(start, []byte("<")):
		return fetch.Errorf(fetch.InvalidContent, "the server sent a web page, not an index: check the URL, which may need a login")
	}
	return (&lines{from: buffered, chooser: c}).read()
}

const (
	byteOrderMark = "\ufeff"
	// lookAhead is how far JSON or a web page are looked for.
	lookAhead = 1 << 10
	// lineBuffer bounds what is kept of a line; the rest of a longer one is not looked at.
	lineBuffer = 16 << 10
	// maxFragment bounds name, version, digest and URLs of one entry together.
	maxFragment = 16 << 10
	// maxURLs bounds the URLs of one entry.
	maxURLs = 32
)

// lines reads an index in YAML line by line. Of YAML it knows the block style, in which all tools write an index: the lines
// of a value are indented deeper than its key, but for lists, which may be at the same depth. So it finds the entries of a chart
// without reading the values of others.
type lines struct {
	from    *bufio.Reader
	chooser *chooser

	number  int
	cut     bool // the present line is longer than lineBuffer
	started bool // something came that is no directive
	entries bool // the lines are below the key entries
	known   bool // there was such a key

	chartAt  int // indentation of the names of charts; 0 until the first one
	ours     bool
	dashAt   int // indentation of the dashes of our chart; -1 until the first one
	fieldAt  int // that of the fields of the present entry; -1 until the first one
	inEntry  bool
	taking   bool // the present field is one that matters
	fragment bytes.Buffer
}

// errDone ends the reading: all entries of the chart were seen.
var errDone = errors.New("done")

func (l *lines) read() error {
	for {
		line, err := l.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = l.take(line)
		}
		if errors.Is(err, errDone) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	if err := l.endEntry(); err != nil {
		return err
	}
	if !l.known {
		return fetch.Errorf(fetch.InvalidContent, "it is not the index of a Helm repository: it has no entries")
	}
	return nil
}

// next returns the next line without its end, valid until the next call.
func (l *lines) next() ([]byte, error) {
	line, err := l.from.ReadSlice('\n')
	l.cut = errors.Is(err, bufio.ErrBufferFull)
	if len(line) == 0 && err != nil {
		return nil, err
	}
	l.number++
	if l.cut {
		line = bytes.Clone(line)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = l.from.ReadSlice('\n')
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

// take reads one line.
func (l *lines) take(line []byte) error {
	body := bytes.TrimLeft(line, " ")
	indent := len(line) - len(body)
	switch {
	case len(body) == 0 || body[0] == '#' || len(bytes.TrimSpace(body)) == 0:
		return nil
	case indent == 0:
		return l.top(body)
	case !l.entries:
		return nil
	}
	if l.chartAt == 0 {
		l.chartAt = indent
	}
	switch {
	case indent < l.chartAt:
		return l.malformed("it is indented less than the lines before it")
	case indent == l.chartAt && !isItem(body):
		return l.chart(body)
	case !l.ours:
		return nil
	}
	return l.inChart(indent, body)
}

// top reads a line at the top level.
func (l *lines) top(body []byte) error {
	if err := l.endChart(); err != nil {
		return err
	}
	switch {
	case body[0] == '%':
		return nil
	case isMarker(body, "---") && !l.started:
		return nil
	case isMarker(body, "---"), isMarker(body, "..."):
		return l.endOfDocument()
	}
	l.started = true
	if isItem(body) {
		return l.malformed("a list where the fields of an index are expected")
	}
	key, rest, err := keyOf(body)
	if err != nil {
		return l.malformed(err.Error())
	}
	l.entries = key == "entries"
	if !l.entries {
		return nil
	}
	l.known, l.chartAt = true, 0
	if rest != "" && rest != "{}" && rest != "null" && rest != "~" {
		return l.malformed(flowStyle)
	}
	return nil
}

// endOfDocument ends the reading at the end of the first document.
func (l *lines) endOfDocument() error {
	if !l.known {
		return fetch.Errorf(fetch.InvalidContent, "it is not the index of a Helm repository: it has no entries")
	}
	return errDone
}

// flowStyle says what is not read.
const flowStyle = "values in brackets, tags, anchors and aliases are not read here: write it as helm repo index does, in block style or whole in JSON"

// chart reads the name of a chart.
func (l *lines) chart(body []byte) error {
	if err := l.endChart(); err != nil {
		return err
	}
	key, rest, err := keyOf(body)
	if err != nil {
		return l.malformed(err.Error())
	}
	if l.ours = l.chooser.begin(key); !l.ours {
		return nil
	}
	l.dashAt = -1
	if rest != "" && rest != "[]" && rest != "null" && rest != "~" {
		return l.malformed(flowStyle)
	}
	return nil
}

// endChart ends the entries of a chart. After those of the one that is looked for, nothing else matters.
func (l *lines) endChart() error {
	if !l.ours {
		return nil
	}
	if err := l.endEntry(); err != nil {
		return err
	}
	return errDone
}

// inChart reads a line of the entries of the chart.
func (l *lines) inChart(indent int, body []byte) error {
	if isItem(body) && (l.dashAt < 0 || indent == l.dashAt) {
		if err := l.endEntry(); err != nil {
			return err
		}
		l.dashAt = indent
		l.fieldAt = -1
		l.inEntry = true
		field := bytes.TrimLeft(body[1:], " ")
		switch valueOf(field) {
		case "":
			return nil
		case "null", "Null", "NULL", "~":
			l.inEntry = false
			return l.chooser.look(entry{empty: true})
		}
		indent += len(body) - len(field)
		body = field
	}
	if l.fieldAt < 0 {
		l.fieldAt = indent
	}
	switch {
	case !l.inEntry || indent <= l.dashAt || indent < l.fieldAt:
		return l.malformed("it is indented less than the lines before it")
	case indent == l.fieldAt && !isItem(body):
		return l.field(body)
	}
	return l.keep(indent, body)
}

// field reads a line with a field of an entry.
func (l *lines) field(body []byte) error {
	if isExplicit(body) {
		l.taking = false
		return nil
	}
	key, _, err := keyOf(body)
	if err != nil {
		return l.malformed(err.Error())
	}
	l.taking = key == "name" || key == "version" || key == "digest" || key == "urls"
	return l.keep(l.fieldAt, body)
}

// keep takes a line of a field that matters.
func (l *lines) keep(indent int, body []byte) error {
	if !l.taking {
		return nil
	}
	if l.cut || l.fragment.Len()+indent-l.fieldAt+len(body) > maxFragment {
		return fetch.Errorf(fetch.LimitExceeded, "line %d: name, version, digest and urls of one entry have more than %d bytes", l.number, maxFragment)
	}
	for range indent - l.fieldAt {
		l.fragment.WriteByte(' ')
	}
	l.fragment.Write(body)
	l.fragment.WriteByte('\n')
	return nil
}

// endEntry hands the present entry to the chooser.
func (l *lines) endEntry() error {
	if !l.inEntry {
		return nil
	}
	read, err := parseFragment(l.fragment.Bytes())
	l.fragment.Reset()
	l.inEntry, l.taking = false, false
	if err != nil {
		return l.malformed("the entry before it: " + err.Error())
	}
	return l.chooser.look(read)
}

func (l *lines) malformed(what string) error {
	return fetch.Errorf(fetch.InvalidContent, "line %d: %s", l.number, what)
}

// isItem tells whether a line begins with the dash of a list.
func isItem(body []byte) bool {
	return body[0] == '-' && (len(body) == 1 || body[1] == ' ' || body[1] == '\t')
}

// isExplicit tells whether a line begins a key, or its value, that encoders write in this way since it is long or has several
// lines: none that matters.
func isExplicit(body []byte) bool {
	return (body[0] == '?' || body[0] == ':') && (len(body) == 1 || body[1] == ' ')
}

// isMarker tells whether a line is the marker of a document.
func isMarker(body []byte, marker string) bool {
	rest, found := bytes.CutPrefix(body, []byte(marker))
	return found && (len(rest) == 0 || rest[0] == ' ' || rest[0] == '\t')
}

// parseFragment reads the fields of an entry that matter.
func parseFragment(fragment []byte) (found entry, err error) {
	var document yaml.Node
	if err := yaml.Unmarshal(fragment, &document); err != nil {
		return found, errors.New("name, version, digest or urls are malformed")
	}
	if len(document.Content) == 0 {
		return found, nil // no field that matters: it is left out
	}
	fields := document.Content[0]
	if fields.Kind != yaml.MappingNode {
		return found, errors.New("it is not a mapping")
	}
	for i := 0; i+1 < len(fields.Content); i += 2 {
		key, value := fields.Content[i], fields.Content[i+1]
		switch key.Value {
		case "name":
			found.name, err = scalarOf(value)
		case "version":
			found.version, err = scalarOf(value)
		case "digest":
			found.digest, err = scalarOf(value)
		case "urls":
			found.urls, err = scalarsOf(value)
		}
		if err != nil {
			return found, errors.New(key.Value + " is malformed: " + err.Error())
		}
	}
	return found, nil
}

func scalarOf(node *yaml.Node) (string, error) {
	switch {
	case node.Kind != yaml.ScalarNode:
		return "", errors.New("it is not a string")
	case node.Tag == "!!null":
		return "", nil
	}
	return node.Value, nil
}

func scalarsOf(node *yaml.Node) ([]string, error) {
	if node.Kind == yaml.ScalarNode && node.Tag == "!!null" {
		return nil, nil
	}
	if node.Kind != yaml.SequenceNode || len(node.Content) > maxURLs {
		return nil, errors.New("it is not a short list")
	}
	texts := make([]string, 0, len(node.Content))
	for _, one := range node.Content {
		text, err := scalarOf(one)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// keyOf divides a line with a key of a mapping into the key and what follows, without blanks and a comment.
func keyOf(body []byte) (key, rest string, err error) {
	switch body[0] {
	case '"', '\'':
		return quotedKeyOf(body)
	case '?', '&', '*', '!', '[', ']', '{', '}', '|', '>', '%', '@', '`', ',', '\t':
		return "", "", errors.New(flowStyle)
	}
	for i, c := range body {
		if c == ':' && (i+1 == len(body) || body[i+1] == ' ' || body[i+1] == '\t') {
			return string(bytes.TrimRight(body[:i], " \t")), valueOf(body[i+1:]), nil
		}
	}
	return "", "", errors.New("it has no key and no list")
}

// quotedKeyOf is keyOf for a key in quotes.
func quotedKeyOf(body []byte) (key, rest string, err error) {
	quote := body[0]
	for i := 1; i < len(body); i++ {
		switch {
		case quote == '"' && body[i] == '\\':
			i++
		case body[i] == quote && quote == '\'' && i+1 < len(body) && body[i+1] == '\'':
			i++
		case body[i] == quote:
			after := bytes.TrimLeft(body[i+1:], " \t")
			if len(after) == 0 || after[0] != ':' || i >= maxFragment {
				return "", "", errors.New("it has no key and no list")
			}
			if err := yaml.Unmarshal(body[:i+1], &key); err != nil {
				return "", "", errors.New("its key is malformed")
			}
			return key, valueOf(after[1:]), nil
		}
	}
	return "", "", errors.New("it has no key and no list")
}

// valueOf is the value on the line of a key; "" where there is only a comment.
func valueOf(rest []byte) string {
	rest = bytes.TrimSpace(rest)
	if len(rest) > 0 && rest[0] == '#' {
		return ""
	}
	if comment := bytes.Index(rest, []byte(" #")); comment >= 0 {
		rest = bytes.TrimSpace(rest[:comment])
	}
	return string(rest)
}
