// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"strconv"
	"text/template/parse"
)

// Names of the functions that count. No template can call them: they are unknown where templates are parsed.
const (
	fnEnter  = "_enter"  // a template begins
	fnLeave  = "_leave"  // and ends
	fnTick   = "_tick"   // an iteration
	fnRange  = "_range"  // what is about to be ranged over
	fnOut    = "_out"    // what is about to be printed
	fnRead   = "_read"   // what is about to be compared, or looked up
	fnMade   = "_made"   // what a method has made
	fnValues = "_values" // the method YAML of values
)

// instrument has the tree of a template count what it does: at its beginning, in each iteration, and where values are
// printed, compared, or made by methods.
func instrument(tree *parse.Tree) error {
	i := &instrumenter{tree}
	nodes, err := i.list(tree.Root, 1)
	if err != nil {
		return err
	}
	begin := action(tree.Root.Pos, identifier(tree.Root.Pos, fnEnter), number(tree.Root.Pos, nodes+stepsPerTurn), text(tree.Root.Pos, tree.ParseName))
	end := action(tree.Root.Pos, identifier(tree.Root.Pos, fnLeave))
	tree.Root.Nodes = append(append([]parse.Node{begin}, tree.Root.Nodes...), end)
	return nil
}

type instrumenter struct{ tree *parse.Tree }

// list returns how many nodes are run at most when a list is, without those of loops.
func (i *instrumenter) list(list *parse.ListNode, depth int) (int, error) {
	if list == nil {
		return 0, nil
	}
	if depth > mostNesting {
		return 0, errTooNested
	}
	total := 0
	for _, node := range list.Nodes {
		nodes, err := i.node(node, depth)
		if err != nil {
			return 0, err
		}
		total += nodes
	}
	return total, nil
}

var errTooNested = &stopped{"actions are nested too deep", "simplify the template"}

func (i *instrumenter) node(node parse.Node, depth int) (int, error) {
	switch n := node.(type) {
	case *parse.TextNode:
		return 1 + len(n.Text)/bytesPerStep, nil
	case *parse.ActionNode:
		nodes, err := i.pipe(n.Pipe, depth)
		if len(n.Pipe.Decl) == 0 && !printsText(n.Pipe) {
			n.Pipe.Cmds = append(n.Pipe.Cmds, command(n.Pos, identifier(n.Pos, fnOut)))
		}
		return nodes, err
	case *parse.IfNode:
		return i.branch(&n.BranchNode, depth)
	case *parse.WithNode:
		return i.branch(&n.BranchNode, depth)
	case *parse.RangeNode:
		return i.loop(n, depth)
	case *parse.TemplateNode:
		return i.pipe(n.Pipe, depth)
	}
	return 1, nil
}

func (i *instrumenter) branch(n *parse.BranchNode, depth int) (int, error) {
	total, err := i.pipe(n.Pipe, depth)
	for _, list := range []*parse.ListNode{n.List, n.ElseList} {
		if err != nil {
			return 0, err
		}
		var nodes int
		nodes, err = i.list(list, depth+1)
		total += nodes
	}
	return total, err
}

func (i *instrumenter) loop(n *parse.RangeNode, depth int) (int, error) {
	head, err := i.pipe(n.Pipe, depth)
	if err != nil {
		return 0, err
	}
	n.Pipe.Cmds = append(n.Pipe.Cmds, command(n.Pos, identifier(n.Pos, fnRange)))
	body, err := i.list(n.List, depth+1)
	if err != nil {
		return 0, err
	}
	n.List.Nodes = append([]parse.Node{action(n.Pos, identifier(n.Pos, fnTick), number(n.Pos, body+stepsPerTurn))}, n.List.Nodes...)
	otherwise, err := i.list(n.ElseList, depth+1)
	return head + otherwise + 1, err
}

// printsText tells whether what a pipeline gives is a text, whatever it is given: the writer counts those.
func printsText(pipe *parse.PipeNode) bool {
	last := pipe.Cmds[len(pipe.Cmds)-1].Args[0]
	switch n := last.(type) {
	case *parse.IdentifierNode:
		return givesText[n.Ident]
	case *parse.StringNode, *parse.NumberNode, *parse.BoolNode:
		return true
	}
	return false
}

// givesText are functions that print nothing but a text of their own.
var givesText = map[string]bool{
	"include": true, "quote": true, "squote": true, "nindent": true, "indent": true, "toYaml": true, "tpl": true,
	"printf": true, "trunc": true, "b64enc": true, "upper": true, "lower": true, "replace": true, "trimSuffix": true,
}

func identifier(pos parse.Pos, name string) *parse.IdentifierNode {
	return parse.NewIdentifier(name).SetPos(pos)
}

func number(pos parse.Pos, n int) *parse.NumberNode {
	return &parse.NumberNode{NodeType: parse.NodeNumber, Pos: pos, IsInt: true, Int64: int64(n), Text: strconv.Itoa(n)}
}

func command(pos parse.Pos, args ...parse.Node) *parse.CommandNode {
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: pos, Args: args}
}

func pipeline(pos parse.Pos, commands ...*parse.CommandNode) *parse.PipeNode {
	return &parse.PipeNode{NodeType: parse.NodePipe, Pos: pos, Cmds: commands}
}

func action(pos parse.Pos, args ...parse.Node) *parse.ActionNode {
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: pos, Pipe: pipeline(pos, command(pos, args...))}
}
