// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
)

// JSONSize is the size of a value in compact JSON. Of texts it counts the escapes that every encoder writes, and no others.
func JSONSize(value any) int64 {
	switch v := value.(type) {
	case map[string]any:
		size := int64(max(1, len(v))) + 1 // brackets and commas
		for key, inner := range v {
			size += textSize(key) + 1 + JSONSize(inner)
		}
		return size
	case []any:
		size := int64(max(1, len(v))) + 1
		for _, inner := range v {
			size += JSONSize(inner)
		}
		return size
	case string:
		return textSize(v)
	case int64:
		return int64(len(strconv.AppendInt(make([]byte, 0, 20), v, 10)))
	case float64:
		written := strconv.AppendFloat(make([]byte, 0, 32), v, floatFormat(v), -1, 64)
		return int64(len(bytes.Replace(written, []byte("e-0"), []byte("e-"), 1)))
	case bool:
		if v {
			return 4
		}
		return 5
	}
	return 4 // null
}

// mostPerByte is what a byte of a string may take in JSON, as an escape; mostPerValue is what a value may take otherwise: quotation
// marks, colon and comma, or a number.
const (
	mostPerByte  = 6
	mostPerValue = 32
)

// mostOf is at least the size in JSON of what one scalar of this length becomes, or of the brackets of a collection.
func mostOf(length int) int64 { return mostPerByte*int64(length) + mostPerValue }

// fits tells that a value certainly has no more than a size in JSON, without a look at its strings.
func fits(value any, size int64) bool {
	left := size
	return takes(value, &left)
}

func takes(value any, left *int64) bool {
	length := 0
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if *left -= mostOf(len(key)); *left < 0 || !takes(inner, left) {
				return false
			}
		}
	case []any:
		for _, inner := range v {
			if !takes(inner, left) {
				return false
			}
		}
	case string:
		length = len(v)
	}
	*left -= mostOf(length)
	return *left >= 0
}

// floatFormat is the format in which encoding/json writes a number.
func floatFormat(f float64) byte {
	if size := math.Abs(f); size != 0 && (size < 1e-6 || size >= 1e21) {
		return 'e'
	}
	return 'f'
}

// textSize is the size of a string with its quotation marks.
func textSize(text string) int64 {
	size := int64(len(text)) + 2
	for i := range len(text) {
		size += int64(escapes[text[i]])
	}
	return size
}

// escapes is by how much each byte of a string is longer in JSON.
var escapes = func() (longer [256]uint8) {
	for c := range ' ' {
		longer[c] = 5
	}
	for _, c := range "\"\\\n\r\t\b\f" {
		longer[c] = 1
	}
	return longer
}()

// TooLarge is the problem of an object that is larger than etcd accepts; nil of others.
func (l Limits) TooLarge(m Manifest) *Problem {
	most := l.OrDefault().ObjectBytes
	if fits(m.Object.Object, most) {
		return nil
	}
	size := JSONSize(m.Object.Object)
	if size <= most {
		return nil
	}
	p := m.Problem(RuleLimit, fmt.Sprintf("the object is %d bytes as JSON, and may have %d: etcd accepts no larger request by default", size, most),
		"make it smaller, or split it; where etcd accepts larger requests, raise --limit-object-bytes")
	return &p
}

// plainText is the size up to which no text is too expensive to parse: the parser makes nodes of all of it before one is counted.
const plainText = 2 << 20

// indicators begin or separate the nodes of YAML: each of them brings two nodes at most, and no node is without one.
var indicators = []string{",", ":", "[", "{", "-", "?", "\n"}

// crowded tells whether a large text may have more nodes than a limit, by its indicators, which manifests have few of in relation
// to their size: a large one is mostly indentation and descriptions.
func crowded(data []byte, limit int) bool {
	if len(data) <= plainText {
		return false
	}
	count := 0
	for _, indicator := range indicators {
		count += bytes.Count(data, []byte(indicator))
	}
	return count > limit
}
