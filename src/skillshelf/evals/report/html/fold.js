"use strict";
(function () {
  const bar = document.querySelector(".buttons");
  if (!bar) return;
  bar.hidden = false;
  bar.addEventListener("click", function (event) {
    const button = event.target.closest("button");
    if (!button) return;
    const what = button.dataset.fold;
    const cases = document.querySelectorAll("details.case");
    if (what === "missed") {
      const only = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(only));
      cases.forEach((one) => { one.hidden = only && one.classList.contains("passed"); });
    } else {
      cases.forEach((one) => { one.open = what === "open"; });
    }
  });
})();
