// Reads a page as text with numbered elements, and finds an element again by its number.
//
// Playwright runs this as a selector engine in a world of its own: it sees the page's elements, and the page's scripts
// see nothing of it. An engine can only hand out elements, so an answer in words is the text of an element that is in
// no document. A selector is `COMMAND:ARGUMENT`, the argument being JSON in hexadecimal:
//
//   read      {first, characters, elements, seconds} -> the text and the elements
//   find      {number, print}                        -> the element that a fingerprint describes, if it is certain
//   inspect   {number, print}                        -> what that element is like now, in words
//   activity  {}                                     -> a number that grows with each change of the document
//
// The other files here come before this one, and all of them share one scope, which only `engine` leaves.

let changes = 0;
new MutationObserver((records) => { changes += records.length; }).observe(document, {
  subtree: true, childList: true, characterData: true, attributes: true,
});

function decode(hex) {
  const bytes = new Uint8Array(hex.length / 2);
  for (let index = 0; index < bytes.length; index++) bytes[index] = parseInt(hex.substr(index * 2, 2), 16);
  return JSON.parse(new TextDecoder().decode(bytes));
}

function say(value) {
  const element = document.createElement("p");
  element.textContent = JSON.stringify(value);
  return [element];
}

const COMMANDS = {
  read: (options) => say(read(options)),
  inspect: ({ number, print }) => say(inspect(number, print)),
  activity: () => say(changes),
  find: ({ number, print }) => [locate(number, print).element].filter(Boolean),
};

const engine = {
  queryAll(root, selector) {
    const [command, argument] = selector.split(":");
    return COMMANDS[command](decode(argument));
  },
  query(root, selector) {
    return this.queryAll(root, selector)[0] || null;
  },
};
