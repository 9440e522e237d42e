// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/satchel-dev/satchel/internal/convert"
)

// locate gives problems the line that they name themselves, or else that of their document.
func locate(root fs.FS, problems []Problem) {
	known := map[string][]int{}
	for i := range problems {
		p := &problems[i]
		if p.File == "" {
			continue
		}
		if p.Line = namedLine(p.Message); p.Line > 0 || p.Document == 0 {
			continue
		}
		if _, read := known[p.File]; !read {
			known[p.File] = documentLines(root, p.File)
		}
		if lines := known[p.File]; p.Document <= len(lines) {
			p.Line = lines[p.Document-1]
		}
	}
}

var lineNumber = regexp.MustCompile(`\bline ([0-9]{1,9}): `)

// namedLine is the line that a message names; 0 where it names none.
func namedLine(message string) int {
	match := lineNumber.FindStringSubmatch(message)
	if match == nil {
		return 0
	}
	line, _ := strconv.Atoi(match[1]) // nine digits are a number
	return line
}

// documentLines are the lines on which the documents of a file begin, as far as it can be read.
func documentLines(root fs.FS, name string) []int {
	file, err := root.Open(name)
	if err != nil {
		return nil
	}
	defer file.Close() //nolint:errcheck // only read from
	data, err := io.ReadAll(io.LimitReader(file, convert.DefaultLimits().FileBytes))
	if err != nil {
		return nil
	}
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '{' {
		if lines, ok := jsonLines(data); ok {
			return lines
		}
	}
	return yamlLines(data)
}

// jsonLines are the lines of a stream of JSON values; false where it is none.
func jsonLines(data []byte) (lines []int, ok bool) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	for {
		end := int(decoder.InputOffset())
		begin := end + len(data[end:]) - len(bytes.TrimLeft(data[end:], " \t\r\n"))
		var value json.RawMessage
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			return lines, true
		}
		if err != nil {
			return nil, false
		}
		lines = append(lines, 1+bytes.Count(data[:begin], []byte("\n")))
	}
}

// yamlLines are the lines of a stream of YAML documents, up to the first that cannot be read.
func yamlLines(data []byte) []int {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var lines []int
	for {
		var document yaml.Node
		if decoder.Decode(&document) != nil {
			return lines
		}
		at := document.Line
		if len(document.Content) > 0 {
			at = document.Content[0].Line
		}
		lines = append(lines, at)
	}
}
