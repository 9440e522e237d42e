// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"text/template/parse"
)

// A random value is refused where it would be used, not where it is made: templates write
//
//	password: {{ .Values.password | default (randAlphaNum 16) | b64enc }}
//
// and make one though a password is given. So a random function returns a mark. Functions that would change a mark return it as
// it is; where one is about to be written into an object, the render is refused, in the name of the function that made it.

// markPrefix begins marks. It consists of letters only, so that no function that prints a value changes it.
const markPrefix = "satchelRandomValueMark"

var marked = regexp.MustCompile(markPrefix + `([0-9]+)x`)

// fnRandom takes the place of functions that make random values.
const fnRandom = "_random"

// certificate is what functions return that make a key and a certificate.
type certificate struct{ Cert, Key string }

// makesCertificate begins the names of those functions.
var makesCertificate = regexp.MustCompile(`^gen(CA|SelfSignedCert|SignedCert)`)

// random returns a mark, or a certificate of marks.
func (r *renderer) random(function, site string, _ ...any) (any, error) {
	made := &refusal{function: function, why: isRandom, site: site}
	if function == "randInt" { // a number bears no mark
		return nil, made
	}
	if err := r.m.make(perValue); err != nil {
		return nil, err
	}
	mark := markPrefix + strconv.Itoa(len(r.marks)) + "x"
	r.marks = append(r.marks, made)
	if makesCertificate.MatchString(function) {
		return certificate{mark, mark}, nil
	}
	return mark, nil
}

// used is the refusal of a text that holds a mark; nil of one that holds none.
func (r *renderer) used(text string) error {
	if len(r.marks) == 0 || !strings.Contains(text, markPrefix) {
		return nil
	}
	match := marked.FindStringSubmatch(text)
	if match == nil {
		return &refusal{function: r.marks[0].function, why: isRandom, site: r.marks[0].site} // only a part of the mark is left
	}
	n, err := strconv.Atoi(match[1])
	if err != nil || n >= len(r.marks) {
		n = 0
	}
	return r.marks[n]
}

// keeps are functions that leave a mark in what they return as it is.
var keeps = words(`quote squote print printf println cat toString toYaml mustToYaml toYamlPretty toToml mustToToml toJson mustToJson
	toPrettyJson mustToPrettyJson toRawJson mustToRawJson indent nindent join get set unset hasKey dict list tuple pluck keys
	values pick omit append push prepend mustAppend mustPush mustPrepend rest mustRest initial mustInitial reverse mustReverse
	slice mustSlice concat compact mustCompact chunk mustChunk merge mustMerge mergeOverwrite mustMergeOverwrite deepCopy
	mustDeepCopy has mustHas uniq mustUniq without mustWithout dig toStrings sortAlpha deepEqual`)

// marked returns the mark among the arguments of a function that would change it.
func (r *renderer) markIn(name string, args []reflect.Value) (string, error) {
	if len(r.marks) == 0 || keeps[name] {
		return "", nil
	}
	for _, arg := range spread(args) {
		if arg.Kind() == reflect.Interface {
			arg = arg.Elem()
		}
		if arg.Kind() == reflect.String {
			if err := r.used(arg.String()); err != nil {
				return marked.FindString(arg.String()), err
			}
		}
	}
	return "", nil
}

// replaceRandom has a command that makes a random value return a mark, which knows the place.
func replaceRandom(tree *parse.Tree, c *parse.CommandNode) {
	function, ok := c.Args[0].(*parse.IdentifierNode)
	if !ok || refusals[function.Ident] != isRandom {
		return
	}
	site, _ := tree.ErrorContext(function)
	c.Args = append([]parse.Node{identifier(function.Pos, fnRandom), text(function.Pos, function.Ident), text(function.Pos, site)}, c.Args[1:]...)
}

func text(pos parse.Pos, value string) *parse.StringNode {
	return &parse.StringNode{NodeType: parse.NodeString, Pos: pos, Quoted: strconv.Quote(value), Text: value}
}
