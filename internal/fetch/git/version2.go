// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/git/protocol"
)

// Version 2 of the protocol (gitprotocol-v2(5)), in which a server lists only references that are asked for, and gives
// away every commit that it has.
const (
	newerVersion = "version 2" // what such a server says first
)

// readCapabilities reads what a server says first in version 2.
func readCapabilities(lines *protocol.Reader) (capabilities, error) {
	able := capabilities{}
	for {
		line, more, err := lines.Text()
		if err != nil || !more {
			return able, err
		}
		able.add(string(line))
	}
}

// command begins a request.
func (c *server) command(name string) []byte {
	request := protocol.AppendPacket(nil, "command=%s\n", name)
	if c.able.has("agent") {
		request = protocol.AppendPacket(request, "agent=%s\n", protocol.Agent)
	}
	if c.able.has("object-format") {
		request = protocol.AppendPacket(request, "object-format=sha1\n")
	}
	return protocol.AppendMark(request, protocol.Delimiter)
}

// listReferences asks for the references that are needed.
func (c *server) listReferences(ctx context.Context, s selection) error {
	request := protocol.AppendPacket(protocol.AppendPacket(c.command("ls-refs"), "peel\n"), "symrefs\n")
	for _, prefix := range s.prefixes {
		request = protocol.AppendPacket(request, "ref-prefix %s\n", prefix)
	}
	body, err := c.remote.Ask(ctx, protocol.AppendMark(request, protocol.Flush), true)
	if err != nil {
		return err
	}
	lines, list := protocol.NewReader(c.counted(body)), &listing{selection: s, most: c.limits.GitRefs, found: c.refs}
	for more := true; more && err == nil; {
		var line []byte
		if line, more, err = lines.Text(); err == nil && more {
			err = list.takeNewer(string(line))
		}
	}
	return errors.Join(err, fetch.CloseBody(body, err))
}

// takeNewer looks at one line of a list: "<hash> <name>" and attributes.
func (l *listing) takeNewer(line string) error {
	words := strings.Split(line, " ")
	if len(words) < 2 {
		return protocol.NotGit("it has the line %s", fetch.Quote(line))
	}
	hash, err := parseHash(words[0])
	if err != nil {
		return err
	}
	name := words[1]
	if err := l.add(name, hash, false); err != nil {
		return err
	}
	for _, attribute := range words[2:] {
		if target, found := strings.CutPrefix(attribute, "symref-target:"); found && name == headName {
			l.found.head = target
		}
		text, found := strings.CutPrefix(attribute, "peeled:")
		if !found {
			continue
		}
		if hash, err = parseHash(text); err != nil {
			return err
		}
		if err := l.add(name, hash, true); err != nil {
			return err
		}
	}
	return nil
}

// newerRequest asks for one object and what it leads to, without history.
func (c *server) newerRequest(want plumbing.Hash) []byte {
	request := protocol.AppendPacket(c.command("fetch"), "ofs-delta\n")
	request = protocol.AppendPacket(protocol.AppendPacket(request, "no-progress\n"), "want %s\n", want)
	if slices.Contains(strings.Fields(c.able["fetch"]), "shallow") {
		request = protocol.AppendPacket(request, "deepen 1\n")
	}
	return protocol.AppendMark(protocol.AppendPacket(request, "done\n"), protocol.Flush)
}

// findNewerPack returns the pack in an answer, after sections about other things.
func findNewerPack(lines *protocol.Reader) (io.Reader, error) {
	for {
		section, more, err := lines.Text()
		switch {
		case err != nil:
			return nil, err
		case !more:
			return nil, protocol.NotGit("it has no pack")
		case string(section) == "packfile":
			return &protocol.Channel{Lines: lines}, nil
		}
		for kind := protocol.Text; kind == protocol.Text; {
			if kind, _, err = lines.Next(); errors.Is(err, io.EOF) {
				err = protocol.Cut(io.ErrUnexpectedEOF)
			}
			if err != nil {
				return nil, err
			}
		}
	}
}
