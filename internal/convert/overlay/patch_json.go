// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// operation is what messages say of one step of a JSON 6902 patch; never its value.
type operation struct{ op, path, from string }

func (o operation) String() string {
	text := o.op + " " + shorten(o.path)
	if o.from != "" {
		text = o.op + " " + shorten(o.from) + " to " + shorten(o.path)
	}
	return text
}

// needs says which members each operation has beside op and path.
var needs = map[string][]string{
	"add": {"value"}, "replace": {"value"}, "test": {"value"}, "remove": nil, "move": {"from"}, "copy": {"from"},
}

// readOperations reads a JSON 6902 patch, and reports what is wrong with it.
func (r *run) readOperations(p *patching, list []any) bool {
	for i, item := range list {
		o, wrong := readOperation(item)
		if wrong != "" {
			r.refuse(fmt.Sprintf("%s, operation %d", p.field, i+1), wrong, "see RFC 6902")
			return false
		}
		p.operations = append(p.operations, o)
	}
	data, err := json.Marshal(list)
	if err == nil {
		p.decoded, err = jsonpatch.DecodePatch(data)
	}
	if err != nil {
		r.refuse(p.field, "the operations cannot be read", "see RFC 6902")
	}
	return err == nil
}

func readOperation(item any) (o operation, wrong string) {
	members, ok := item.(map[string]any)
	if !ok {
		return o, "it is no mapping with op and path"
	}
	o.op, _ = members["op"].(string)
	o.path, _ = members["path"].(string)
	wants, known := needs[o.op]
	switch {
	case !known:
		return o, "op is none of add, remove, replace, move, copy and test"
	case !strings.HasPrefix(o.path, "/"):
		return o, "path is no JSON pointer, which begins with a slash: an object as a whole cannot be changed so"
	}
	for _, member := range wants {
		if _, there := members[member]; !there {
			return o, fmt.Sprintf("%s needs %s", o.op, member)
		}
	}
	if from, there := members["from"]; there {
		o.from, _ = from.(string)
		if !strings.HasPrefix(o.from, "/") {
			return o, "from is no JSON pointer, which begins with a slash"
		}
	}
	return o, ""
}

// operate applies a JSON 6902 patch to an object.
func (p *patching) operate(e *entry) (map[string]any, *fault) {
	data, err := json.Marshal(e.Object.Object)
	if err != nil {
		return nil, &fault{"the object cannot be written as JSON", ""}
	}
	if changed, err := applyOperations(p.decoded, data); err == nil {
		return objectOf(changed)
	}
	for i := range p.decoded { // which one was it?
		next, err := applyOperations(p.decoded[i:i+1], data)
		if err != nil {
			return nil, &fault{fmt.Sprintf("operation %d (%s) fails: %s", i+1, p.operations[i], because(err)), "correct it, or let target select other objects"}
		}
		data = next
	}
	return nil, &fault{"the operations fail together, and each of them by itself does not", "make several patches of it"}
}

func applyOperations(patch jsonpatch.Patch, data []byte) (out []byte, err error) {
	defer func() {
		if r := recover(); r != nil { // the library's own mistakes must not end the process
			err = errors.New("broke off")
		}
	}()
	return patch.ApplyWithOptions(data, &jsonpatch.ApplyOptions{SupportNegativeIndices: true, EscapeHTML: true})
}

// because says why an operation failed; the library's own words may quote values.
func because(err error) string {
	switch {
	case errors.Is(err, jsonpatch.ErrTestFailed):
		return "the object has another value there, or none"
	case errors.Is(err, jsonpatch.ErrMissing):
		return "the object has nothing there"
	case errors.Is(err, jsonpatch.ErrInvalidIndex):
		return "the list has no such index"
	}
	return "the path does not fit the object"
}

// objectOf reads an object back.
func objectOf(data []byte) (map[string]any, *fault) {
	value, err := decode(data)
	object, ok := value.(map[string]any)
	if err != nil || !ok {
		return nil, &fault{"what the patch makes of it is no object", "correct the patch"}
	}
	if _, ok := object["metadata"].(map[string]any); !ok {
		return nil, &fault{"the patch takes its metadata away", "correct the patch"}
	}
	return object, nil
}

// decode reads JSON into values as manifests have them: whole numbers are int64.
func decode(data []byte) (any, error) {
	var value any
	err := utiljson.Unmarshal(data, &value)
	return value, err
}
