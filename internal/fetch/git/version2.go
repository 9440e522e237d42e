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
)

// Version 2 of the protocol (gitprotocol-v2(5)), in which a server lists only references that are asked for, and gives
// away every commit that it has.
const (
	versionTwo   = "version=2"
	newerVersion = "version 2" // what such a server says first
)

// readCapabilities reads what a server says first in version 2.
func readCapabilities(lines *packets) (capabilities, error) {
	able := capabilities{}
	for {
		line, more, err := lines.text()
		if err != nil || !more {
			return able, err
		}
		able.add(string(line))
	}
}

// command begins a request.
func (c *server) command(name string) []byte {
	request := appendPacket(nil, "command=%s\n", name)
	if c.able.has("agent") {
		request = appendPacket(request, "agent=%s\n", agent)
	}
	if c.able.has("object-format") {
		request = appendPacket(request, "object-format=sha1\n")
	}
	return appendMark(request, delimiterPacket)
}

// listReferences asks for the references that are needed.
func (c *server) listReferences(ctx context.Context, s selection) error {
	request := appendPacket(appendPacket(c.command("ls-refs"), "peel\n"), "symrefs\n")
	for _, prefix := range s.prefixes {
		request = appendPacket(request, "ref-prefix %s\n", prefix)
	}
	body, err := c.remote.ask(ctx, appendMark(request, flushPacket), true)
	if err != nil {
		return err
	}
	lines, list := newPackets(c.counted(body)), &listing{selection: s, most: c.limits.GitRefs, found: c.refs}
	for more := true; more && err == nil; {
		var line []byte
		if line, more, err = lines.text(); err == nil && more {
			err = list.takeNewer(string(line))
		}
	}
	return errors.Join(err, closed(body, err))
}

// takeNewer looks at one line of a list: "<hash> <name>" and attributes.
func (l *listing) takeNewer(line string) error {
	words := strings.Split(line, " ")
	if len(words) < 2 {
		return notGit("it has the line %s", fetch.Quote(line))
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
	request := appendPacket(c.command("fetch"), "ofs-delta\n")
	request = appendPacket(appendPacket(request, "no-progress\n"), "want %s\n", want)
	if slices.Contains(strings.Fields(c.able["fetch"]), "shallow") {
		request = appendPacket(request, "deepen 1\n")
	}
	return appendMark(appendPacket(request, "done\n"), flushPacket)
}

// findNewerPack returns the pack in an answer, after sections about other things.
func findNewerPack(lines *packets) (io.Reader, error) {
	for {
		section, more, err := lines.text()
		switch {
		case err != nil:
			return nil, err
		case !more:
			return nil, notGit("it has no pack")
		case string(section) == "packfile":
			return &channel{lines: lines}, nil
		}
		for kind := textPacket; kind == textPacket; {
			if kind, _, err = lines.next(); errors.Is(err, io.EOF) {
				err = cut(io.ErrUnexpectedEOF)
			}
			if err != nil {
				return nil, err
			}
		}
	}
}
