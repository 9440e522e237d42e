// SPDX-License-Identifier: Apache-2.0

package variables

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of expressions.
const (
	deepestDefault = 5   // variables within the defaults of others
	longestName    = 253 // of a variable
)

var (
	errOpen     = errors.New("a ${ has no end")
	errNoForm   = errors.New("a ${ begins no variable such as ${name} or ${name:=default}")
	errTooLarge = errors.New("the values of the variables have too many bytes in all")
	errTooDeep  = errors.New("the defaults of variables nest too deep")
	errNotATxt  = "the value of the variable %s is not valid UTF-8"
	errNoValue  = "the variable %s has no value, and no default stands with it"
	errPosition = "the variable %s is cut at a position that is no number"
)

// expand replaces the variables in a text. whole tells that the text was nothing but one variable. What a variable gives is
// not looked through again, so that a value can name no other variable.
func (v *Values) expand(text string, depth int) (out string, whole bool, err error) {
	var b strings.Builder
	for rest := text; ; {
		i := strings.Index(rest, "${")
		if i < 0 {
			b.WriteString(rest)
			return b.String(), whole, nil
		}
		if i > 0 && rest[i-1] == '$' { // $${ stands for ${
			b.WriteString(rest[:i-1] + "${")
			rest = rest[i+2:]
			continue
		}
		b.WriteString(rest[:i])
		end := closing(rest[i+2:])
		if end < 0 {
			return "", false, errOpen
		}
		value, err := v.evaluate(rest[i+2:i+2+end], depth)
		if err == nil {
			err = v.reserve(len(value))
		}
		if err != nil {
			return "", false, err
		}
		b.WriteString(value)
		whole = i == 0 && len(rest) == len(text) && i+2+end+1 == len(rest)
		rest = rest[i+2+end+1:]
	}
}

// closing finds the brace that ends an expression.
func closing(text string) int {
	for i, open := 0, 0; i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], "${"):
			open++
		case text[i] == '}' && open == 0:
			return i
		case text[i] == '}':
			open--
		}
	}
	return -1
}

// evaluate is what stands between the braces: a name, and what becomes of its value.
func (v *Values) evaluate(expression string, depth int) (string, error) {
	if name, isLength := strings.CutPrefix(expression, "#"); isLength && IsName(name) {
		value, err := v.known(name)
		return strconv.Itoa(utf8.RuneCountInString(value)), err
	}
	length := 0
	for length < len(expression) && isNameByte(expression[length], length) {
		length++
	}
	name, operation := expression[:length], expression[length:]
	if !IsName(name) {
		return "", errNoForm
	}
	for _, by := range []string{":=", ":-", "=", "-"} {
		if fallback, has := strings.CutPrefix(operation, by); has {
			return v.defaulted(name, fallback, by[0] == ':', depth)
		}
	}
	value, err := v.known(name)
	if err != nil {
		return "", err
	}
	return v.transform(name, value, operation)
}

// IsName tells whether a string can name a variable.
func IsName(name string) bool {
	for i := range len(name) {
		if !isNameByte(name[i], i) {
			return false
		}
	}
	return name != "" && len(name) <= longestName
}

func isNameByte(c byte, at int) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || at > 0 && c >= '0' && c <= '9'
}

// known is the value of a variable that has to have one.
func (v *Values) known(name string) (string, error) {
	value, ok := v.value(name)
	if !ok {
		return "", fmt.Errorf(errNoValue, name)
	}
	if !utf8.ValidString(value) {
		return "", fmt.Errorf(errNotATxt, name)
	}
	return value, nil
}

// defaulted is the value, or the default where there is none; also where it is empty, with a colon.
func (v *Values) defaulted(name, fallback string, colon bool, depth int) (string, error) {
	if value, ok := v.value(name); ok && (value != "" || !colon) {
		return v.known(name)
	}
	if depth >= deepestDefault {
		return "", errTooDeep
	}
	out, _, err := v.expand(fallback, depth+1)
	return out, err
}

// transform is what may follow a name, as in a shell.
func (v *Values) transform(name, value, operation string) (string, error) {
	operations := []struct {
		by    string
		apply func(argument string) (string, error)
	}{
		{"^^", plainly(func(string) string { return strings.ToUpper(value) })},
		{",,", plainly(func(string) string { return strings.ToLower(value) })},
		{"^", plainly(func(string) string { return first(value, strings.ToUpper) })},
		{",", plainly(func(string) string { return first(value, strings.ToLower) })},
		{"//", func(a string) (string, error) { return v.replaced(value, a, -1) }},
		{"/", func(a string) (string, error) { return v.replaced(value, a, 1) }},
		{"##", trimmed(value, strings.TrimPrefix)}, {"#", trimmed(value, strings.TrimPrefix)},
		{"%%", trimmed(value, strings.TrimSuffix)}, {"%", trimmed(value, strings.TrimSuffix)},
		{":", func(a string) (string, error) { return cut(name, value, a) }},
	}
	if operation == "" {
		return value, nil
	}
	for _, o := range operations {
		if argument, has := strings.CutPrefix(operation, o.by); has {
			return o.apply(argument)
		}
	}
	return "", errNoForm
}

// plainly is an operation that takes no argument.
func plainly(change func(string) string) func(string) (string, error) {
	return func(argument string) (string, error) {
		if argument != "" {
			return "", errNoForm
		}
		return change(argument), nil
	}
}

func first(value string, change func(string) string) string {
	_, size := utf8.DecodeRuneInString(value)
	return change(value[:size]) + value[size:]
}

// trimmed takes a text off, as it is written: patterns of a shell are not supported.
func trimmed(value string, trim func(string, string) string) func(string) (string, error) {
	return func(argument string) (string, error) {
		if argument == "" || strings.ContainsAny(argument, "*?[$\\") {
			return "", errNoForm
		}
		return trim(value, argument), nil
	}
}

// replaced puts one text in the place of another: once, or wherever it stands.
func (v *Values) replaced(value, argument string, times int) (string, error) {
	from, to, _ := strings.Cut(argument, "/")
	if from == "" || strings.ContainsAny(argument, "*?[$\\") {
		return "", errNoForm
	}
	found := strings.Count(value, from)
	if times >= 0 {
		found = min(found, times)
	}
	if grown := len(value) + found*(len(to)-len(from)); int64(grown) > v.left {
		return "", v.reserve(grown)
	}
	return strings.Replace(value, from, to, times), nil
}

// cut takes a part out: position, or position and length, in characters.
func cut(name, value, argument string) (string, error) {
	at, of, limited := strings.Cut(argument, ":")
	position, err := strconv.Atoi(at)
	if err != nil || position < 0 {
		return "", fmt.Errorf(errPosition, name)
	}
	characters := []rune(value)
	characters = characters[min(position, len(characters)):]
	if limited {
		length, err := strconv.Atoi(of)
		if err != nil || length < 0 {
			return "", fmt.Errorf(errPosition, name)
		}
		characters = characters[:min(length, len(characters))]
	}
	return string(characters), nil
}
