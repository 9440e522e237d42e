// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"fmt"
	"reflect"
	"strings"
)

// Bounds of single calls.
const (
	mostItems   = 100_000 // of a list that is counted out
	mostParsed  = 1 << 20 // bytes of a text that is parsed
	mostPattern = 1000    // bytes of a regular expression, a pattern of files, a version
	mostAddends = 1000    // of a calculation with decimals
)

func guardRepeat(m *meter, args []reflect.Value) error {
	return m.make(times(max(0, args[0].Int()), int64(args[1].Len())+1))
}

func guardIndent(m *meter, args []reflect.Value) error {
	lines := int64(strings.Count(args[1].String(), "\n")) + 2
	return m.make(times(max(0, args[0].Int()), lines) + int64(args[1].Len()))
}

func guardReplace(m *meter, args []reflect.Value) error {
	from, to, text := args[0].String(), args[1].Len(), args[2].String()
	return m.make(times(int64(strings.Count(text, from)), int64(to)))
}

func guardJoin(m *meter, args []reflect.Value) error {
	w, err := m.weigh(args[1])
	if err != nil {
		return err
	}
	return m.make(w.bytes + times(w.values, int64(args[0].Len())))
}

func guardSplit(m *meter, args []reflect.Value) error {
	text := args[len(args)-1].String()
	return m.make(times(int64(strings.Count(text, args[0].String()))+1, 3*perValue) + int64(len(text)))
}

func guardChunk(m *meter, args []reflect.Value) error {
	if args[0].Int() < 1 {
		return fmt.Errorf("the size of a chunk is at least one")
	}
	return m.make(3 * size(args[1]))
}

func guardWrap(m *meter, args []reflect.Value) error {
	between := int64(1)
	if len(args) == 3 {
		between += int64(args[1].Len())
	}
	return m.make(times(int64(args[len(args)-1].Len()), between))
}

// items bounds a list that is counted out, in numbers that cannot overflow.
func (m *meter) items(start, stop, step int64) error {
	const far = 1 << 40
	if max(start, -start, stop, -stop, step, -step) > far || start == -start && start != 0 {
		return errItems
	}
	count := int64(0)
	if step != 0 {
		count = (stop - start) / step
	}
	if count > mostItems {
		return errItems
	}
	return m.make(max(0, count) * perValue)
}

var errItems = &stopped{fmt.Sprintf("a list of more than %d numbers is counted out", mostItems), "bound the number that is given"}

func guardUntil(m *meter, args []reflect.Value) error {
	count := args[0].Int()
	if count < 0 {
		return m.items(0, count, -1)
	}
	return m.items(0, count, 1)
}

func guardUntilStep(m *meter, args []reflect.Value) error {
	return m.items(args[0].Int(), args[1].Int(), args[2].Int())
}

func guardSeq(m *meter, args []reflect.Value) error {
	given := spread(args)
	start, stop, step := int64(1), int64(0), int64(1)
	switch len(given) {
	case 1:
		stop = given[0].Int()
	case 2:
		start, stop = given[0].Int(), given[1].Int()
	case 3:
		start, step, stop = given[0].Int(), given[1].Int(), given[2].Int()
	}
	if len(given) < 3 && stop < start {
		step = -1
	}
	return m.items(start, stop, step)
}

// guardPairs is for functions that compare each item with all others.
func guardPairs(m *meter, args []reflect.Value) error {
	w, err := m.weigh(args[0])
	if err != nil {
		return err
	}
	return m.step(times(w.values, size(args[0])/perValue+1) / 4)
}

func guardOmitted(m *meter, args []reflect.Value) error {
	w, err := m.weighAll(args)
	if err != nil {
		return err
	}
	return m.step(times(w.values, int64(args[1].Len())) / 4)
}

// guardKeys weighs what becomes keys; the values are only referred to.
func guardKeys(m *meter, args []reflect.Value) error {
	given := spread(args)
	for i := 0; i < len(given); i += 2 {
		if w, err := m.weigh(given[i]); err != nil || m.make(w.bytes+2*perValue) != nil {
			return errMade
		}
	}
	return nil
}

// guardFormat bounds the width and precision of verbs, given as digits or as arguments.
func guardFormat(m *meter, args []reflect.Value) error {
	format := args[0].String()
	padding, number := int64(len(format)), int64(0)
	for _, c := range []byte(format) {
		switch {
		case c >= '0' && c <= '9':
			number = min(number*10+int64(c-'0'), mostParsed)
		default:
			padding, number = padding+number, 0
		}
	}
	if stars := int64(strings.Count(format, "*")); stars > 0 {
		padding += times(stars, widest(args[1])) // an index may have each of them take the same argument
	}
	w, err := m.weigh(args[1])
	if err != nil {
		return err
	}
	if strings.Contains(format, "[") { // a verb may print any argument again
		w.bytes = times(w.bytes, int64(strings.Count(format, "%")))
	}
	return m.make(padding + w.bytes)
}

// widest is the largest width that an argument may be.
func widest(args reflect.Value) int64 {
	width := int64(0)
	for i := range args.Len() {
		if v := args.Index(i); v.Kind() == reflect.Interface && v.Elem().IsValid() && v.Elem().CanInt() {
			width = max(width, min(max(v.Elem().Int(), -v.Elem().Int()), mostParsed))
		}
	}
	return width
}

// guardParts weighs what is made of the parts of all arguments together, before it is made.
func guardParts(m *meter, args []reflect.Value) error {
	total := int64(0)
	for _, arg := range spread(args) {
		total += size(arg)
	}
	return m.make(total)
}

func guardShort(_ *meter, args []reflect.Value) error {
	for _, arg := range args {
		if arg.Kind() == reflect.String && arg.Len() > mostPattern {
			return fmt.Errorf("a version, or a constraint of versions, is longer than %d bytes", mostPattern)
		}
	}
	return nil
}

func guardDecimals(m *meter, args []reflect.Value) error {
	if len(spread(args)) > mostAddends {
		return errItems
	}
	return m.step(int64(len(spread(args))) * 100)
}

// guardPassword counts what deriving a key takes, which is meant to take long.
func guardPassword(m *meter, args []reflect.Value) error {
	if err := flat(m, args); err != nil {
		return err
	}
	return m.step(mostSteps / 10)
}
