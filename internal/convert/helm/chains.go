// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"slices"
	"text/template/parse"
)

// makers are the methods of files that make something each time they are called.
var makers = map[string]bool{"Get": true, "GetBytes": true, "Glob": true, "AsConfig": true, "AsSecrets": true, "Lines": true}

// comparing are functions of text/template that look at the whole of texts.
var comparing = map[string]bool{"eq": true, "ne": true, "lt": true, "le": true, "gt": true, "ge": true, "index": true}

// pipe has the commands of a pipeline count, and returns how many nodes they have.
func (i *instrumenter) pipe(pipe *parse.PipeNode, depth int) (int, error) {
	if pipe == nil {
		return 1, nil
	}
	if depth > mostNesting {
		return 0, errTooNested
	}
	total := 1
	commands := make([]*parse.CommandNode, 0, len(pipe.Cmds)+1)
	for at, c := range pipe.Cmds {
		if compares(c, at > 0) {
			if at > 0 {
				commands = append(commands, command(c.Pos, identifier(c.Pos, fnRead)))
			}
			readArguments(c)
		}
		replaceRandom(i.tree, c)
		nodes, err := i.arguments(c, depth)
		if err != nil {
			return 0, err
		}
		total += nodes
		commands = append(commands, c)
		if makers[last(c.Args[0])] {
			commands = append(commands, command(c.Pos, identifier(c.Pos, fnMade)))
		}
	}
	pipe.Cmds = commands
	return total, nil
}

// arguments of a command are pipelines, chains of fields, and literals.
func (i *instrumenter) arguments(c *parse.CommandNode, depth int) (int, error) {
	total := 1
	for at, arg := range c.Args {
		nodes, err := i.argument(arg, depth)
		if err != nil {
			return 0, err
		}
		total += nodes
		if replaced := withoutYAML(arg); replaced != nil {
			c.Args[at] = replaced
		} else if at > 0 && makers[last(arg)] {
			c.Args[at] = pipeline(arg.Position(), command(arg.Position(), arg), command(arg.Position(), identifier(arg.Position(), fnMade)))
		}
	}
	return total, nil
}

func (i *instrumenter) argument(arg parse.Node, depth int) (int, error) {
	switch n := arg.(type) {
	case *parse.PipeNode:
		return i.pipe(n, depth+1)
	case *parse.ChainNode:
		nodes, err := i.argument(n.Node, depth+1)
		return nodes + len(n.Field), err
	case *parse.FieldNode:
		return len(n.Ident), nil
	case *parse.VariableNode:
		return len(n.Ident), nil
	case *parse.IdentifierNode:
		return stepsPerCall, nil
	case *parse.StringNode:
		return 1 + len(n.Text)/bytesPerStep, nil
	}
	return 1, nil
}

// last is the last field or method of a chain.
func last(node parse.Node) string {
	fields, from := chain(node)
	if len(fields) <= from {
		return ""
	}
	return fields[len(fields)-1]
}

// chain returns the names of a chain; those before the index are no fields.
func chain(node parse.Node) (fields []string, from int) {
	switch n := node.(type) {
	case *parse.FieldNode:
		return n.Ident, 0
	case *parse.ChainNode:
		return n.Field, 0
	case *parse.VariableNode:
		return n.Ident, 1
	}
	return nil, 0
}

// withoutYAML replaces the method YAML of values, which would print a value that contains itself without an end, by a
// function that looks first; nil where a node does not use it.
func withoutYAML(node parse.Node) parse.Node {
	fields, from := chain(node)
	at := slices.Index(fields[min(from, len(fields)):], "YAML")
	if at < 0 {
		return nil
	}
	at += from
	var before parse.Node
	pos := node.Position()
	switch n := node.(type) {
	case *parse.FieldNode:
		before = &parse.DotNode{NodeType: parse.NodeDot, Pos: pos}
		if at > 0 {
			before = &parse.FieldNode{NodeType: parse.NodeField, Pos: pos, Ident: n.Ident[:at]}
		}
	case *parse.ChainNode:
		before = n.Node
		if at > 0 {
			before = &parse.ChainNode{NodeType: parse.NodeChain, Pos: pos, Node: n.Node, Field: n.Field[:at]}
		}
	case *parse.VariableNode:
		before = &parse.VariableNode{NodeType: parse.NodeVariable, Pos: pos, Ident: n.Ident[:at]}
	}
	printed := pipeline(pos, command(pos, before), command(pos, identifier(pos, fnValues)))
	if at+1 == len(fields) {
		return printed
	}
	after := &parse.ChainNode{NodeType: parse.NodeChain, Pos: pos, Node: printed, Field: fields[at+1:]}
	return withoutYAMLAgain(after)
}

// withoutYAMLAgain does the same for what follows.
func withoutYAMLAgain(node parse.Node) parse.Node {
	if replaced := withoutYAML(node); replaced != nil {
		return replaced
	}
	return node
}

// compares tells whether a command compares, or looks up, texts that are both of any length. Beside a literal they are not.
func compares(c *parse.CommandNode, piped bool) bool {
	function, ok := c.Args[0].(*parse.IdentifierNode)
	if !ok || !comparing[function.Ident] {
		return false
	}
	open := 0
	if piped {
		open++
	}
	for _, arg := range c.Args[1:] {
		if !literal(arg) {
			open++
		}
	}
	return open > 1
}

func literal(node parse.Node) bool {
	switch node.(type) {
	case *parse.StringNode, *parse.NumberNode, *parse.BoolNode, *parse.NilNode:
		return true
	}
	return false
}

func readArguments(c *parse.CommandNode) {
	for at, arg := range c.Args {
		if at > 0 && !literal(arg) {
			c.Args[at] = pipeline(arg.Position(), command(arg.Position(), arg), command(arg.Position(), identifier(arg.Position(), fnRead)))
		}
	}
}
