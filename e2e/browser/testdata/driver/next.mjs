// A production build of Next.js.
import { arrived, open, run, step } from './browser.mjs'

const { context, page, close } = await open()
const at = (path) => run.site + path
const go = (name, play) => step(context, name, play)

try {
  await go('listing', () => page.goto(at('/')))
  await go('scroll past thirty links', async () => {
    for (let i = 0; i < 30; i++) {
      await page.locator(`#soft-${i}`).scrollIntoViewIfNeeded()
      await page.waitForTimeout(60)
    }
  })
  await go('ten soft clicks', async () => {
    for (let i = 0; i < 10; i++) {
      await page.click(`#soft-${i}`)
      await page.waitForFunction((n) => document.querySelector('h1')?.textContent === `Article ${n}`, i)
      await page.click('#back')
      await page.waitForFunction(() => document.querySelector('h1')?.textContent === 'Thirty articles')
    }
  })
  await go('five soft clicks without prefetch', async () => {
    for (let i = 0; i < 5; i++) {
      await page.click(`#cold-${i}`)
      await page.waitForFunction((n) => document.querySelector('h1')?.textContent === `Plain ${n}`, i)
      await page.click('#back')
      await page.waitForFunction(() => document.querySelector('h1')?.textContent === 'Thirty articles')
    }
  })
  await go('ten hard clicks', async () => {
    for (let i = 0; i < 10; i++) {
      await page.click(`#hard-${i}`)
      await arrived(page, `/article/${i}`)
      await page.goBack({ waitUntil: 'commit' })
      await page.waitForFunction(() => document.querySelector('h1')?.textContent === 'Thirty articles')
    }
  })
} finally {
  await close()
}
