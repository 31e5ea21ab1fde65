"use strict";
(() => {
  const bar = document.getElementById("search");
  const words = document.getElementById("words");
  const found = document.getElementById("found");
  const entries = [...document.querySelectorAll(".turn, .event")];
  const texts = entries.map((entry) => entry.textContent.toLowerCase());
  const folds = [...document.querySelectorAll("details")];
  bar.hidden = false;
  words.addEventListener("input", () => {
    const wanted = words.value.trim().toLowerCase();
    let count = 0;
    entries.forEach((entry, place) => {
      const hit = texts[place].includes(wanted);
      entry.classList.toggle("hidden", !hit);
      count += hit ? 1 : 0;
    });
    document.querySelectorAll(".agent, .group").forEach((fold) => { if (wanted) fold.open = true; });
    found.textContent = wanted ? count + " found" : "";
  });
  document.getElementById("open").addEventListener("click", () => folds.forEach((fold) => { fold.open = true; }));
  document.getElementById("close").addEventListener("click", () => folds.forEach((fold) => { fold.open = false; }));
  const show = () => {
    const target = document.getElementById(location.hash.slice(1));
    for (let fold = target; fold; fold = fold.parentElement) if (fold.tagName === "DETAILS") fold.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", show);
  show();
})();
